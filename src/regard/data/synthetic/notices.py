"""Travel notices with one-line summaries. Names and numbers are new in every one, so that they must be copied."""

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


def random_name(rng: random.Random) -> str:
    """An invented name of a place or a boat."""
    return rng.choice(STARTS) + rng.choice(MIDDLES) * rng.randint(0, 1) + rng.choice(ENDS)


def notice(rng: random.Random) -> tuple[str, str]:
    """A notice and its summary."""
    kind, cause = rng.choice(KINDS), rng.choice(list(CAUSES))
    name, start, end = random_name(rng), random_name(rng), random_name(rng)
    number, minutes = rng.randint(2, 998), rng.randrange(5, 180, 5)
    sentences = rng.sample(FILLERS, rng.randint(2, 4))
    if rng.random() < 0.3:
        news = f"The {kind} {name} {number} from {start} to {end} is cancelled because of {CAUSES[cause]}."
        summary = f"{kind} {number} to {end} cancelled: {cause}"
    else:
        news = (
            f"Because of {CAUSES[cause]}, the {kind} {name} {number} from {start} to {end} will leave about "
            f"{minutes} minutes late."
        )
        summary = f"{kind} {number} to {end} {minutes} min late: {cause}"
    sentences.insert(rng.randint(0, len(sentences)), news)
    return " ".join(sentences), summary


def notices(count: int, *, split: str, seed: int) -> list[tuple[str, str]]:
    """`count` notices with their summaries."""
    rng = random.Random(f"{seed} {split}")
    return [notice(rng) for _ in range(count)]
