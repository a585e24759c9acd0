"""Stories of people who move and carry things, with a question each: "Where is the lamp ?" """

import random

PEOPLE = ("Ada", "Bruno", "Chen", "Dilek", "Emil")
PLACES = ("kitchen", "garden", "cellar", "attic", "library", "garage")
THINGS = ("lamp", "ball", "book", "key")


def story(rng: random.Random) -> tuple[str, str, str]:
    """A story, a question and its answer."""
    people = rng.sample(PEOPLE, 2)
    at = dict.fromkeys(people, "")
    owner_of: dict[str, str] = {}  # of each carried thing
    place_of: dict[str, str] = {}  # of each thing on the floor
    free = rng.sample(THINGS, 2)
    lines: list[str] = []
    for _ in range(rng.randint(1, 7)):
        who = rng.choice(people)
        carried = [thing for thing, owner in owner_of.items() if owner == who]
        if carried and rng.random() < 0.3:
            thing = rng.choice(carried)
            del owner_of[thing]
            place_of[thing] = at[who]
            lines.append(f"{who} put down the {thing} .")
        elif at[who] and free and rng.random() < 0.45:
            thing = free.pop()
            owner_of[thing] = who
            lines.append(f"{who} took the {thing} .")
        else:
            at[who] = rng.choice([place for place in PLACES if place != at[who]])
            lines.append(f"{who} {rng.choice(('went', 'walked', 'ran'))} to the {at[who]} .")
    questions = [(f"Where is {who} ?", place) for who, place in at.items() if place]
    questions += [(f"Where is the {thing} ?", at[owner]) for thing, owner in owner_of.items()]
    questions += [(f"Where is the {thing} ?", place) for thing, place in place_of.items()]
    questions += [(f"Who has the {thing} ?", owner) for thing, owner in owner_of.items()]
    question, answer = rng.choice(questions)
    return " ".join(lines), question, answer


def stories(count: int, *, split: str, seed: int) -> list[tuple[str, str, str]]:
    """`count` stories, each with a question and its answer."""
    rng = random.Random(f"{seed} {split}")
    return [story(rng) for _ in range(count)]
