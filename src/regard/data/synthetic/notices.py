"""Notices of boats, trains and buses, and each in one line. Names and numbers are new in every one: they are copied."""

import random

KINDS = ("ferry", "train", "bus", "tram", "night train", "cable car")
CAUSES = {
    "fog": "thick fog along the route",
    "ice": "ice on the line since early morning",
    "a strike": "a strike of the crew that began at noon",
    "a fault": "a technical fault that is being looked into",
    "flooding": "flooding after three days of rain",
    "a landslide": "a landslide near the second tunnel",
}
FILLERS = (
    "Passengers are asked to listen to further announcements.",
    "Refreshments are served in the waiting room.",
    "Tickets stay valid until the end of the week.",
    "Staff at the information desk will help with connections.",
    "Bicycles can be taken along as usual.",
    "We thank all passengers for their patience.",
    "The lift at the main entrance is out of order.",
    "Children under six travel free of charge.",
)
STARTS = ("Bar", "Kel", "Mor", "Tan", "Ves", "Lin", "Dor", "Hal", "Fen", "Rus", "Gal", "Pem", "Wes", "Ost", "Nar")
MIDDLES = ("a", "e", "i", "o", "u", "an", "en", "ir", "or", "al", "em")
ENDS = ("by", "ton", "mouth", "stad", "holm", "wick", "dale", "burg", "mere", "vik", "field")


def name(dice: random.Random) -> str:
    """Of a place or a boat, made up."""
    return dice.choice(STARTS) + dice.choice(MIDDLES) * dice.randint(0, 1) + dice.choice(ENDS)


def notice(dice: random.Random) -> tuple[str, str]:
    """A notice, and what it says in one line."""
    kind, cause = dice.choice(KINDS), dice.choice(list(CAUSES))
    called, start, end = name(dice), name(dice), name(dice)
    number, minutes = dice.randint(2, 998), dice.randrange(5, 180, 5)
    sentences = dice.sample(FILLERS, dice.randint(2, 4))
    if dice.random() < 0.3:
        news = f"The {kind} {called} {number} from {start} to {end} is cancelled because of {CAUSES[cause]}."
        said = f"{kind} {number} to {end} cancelled: {cause}"
    else:
        news = (
            f"Because of {CAUSES[cause]}, the {kind} {called} {number} from {start} to {end} will leave about "
            f"{minutes} minutes late."
        )
        said = f"{kind} {number} to {end} {minutes} min late: {cause}"
    sentences.insert(dice.randint(0, len(sentences)), news)
    return " ".join(sentences), said


def notices(count: int, *, part: str, seed: int) -> list[tuple[str, str]]:
    """So many."""
    dice = random.Random(f"{seed} {part}")
    return [notice(dice) for _ in range(count)]
