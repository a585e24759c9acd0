"""Stories of who goes where and takes what, with a question each: "Where is the lamp ?" """

import random

PEOPLE = ("Ada", "Bruno", "Chen", "Dilek", "Emil")
PLACES = ("kitchen", "garden", "cellar", "attic", "library", "garage")
THINGS = ("lamp", "ball", "book", "key")


def story(dice: random.Random) -> tuple[str, str, str]:
    """A story, a question and its answer."""
    people = dice.sample(PEOPLE, 2)
    at = dict.fromkeys(people, "")
    has: dict[str, str] = {}  # thing: who has it
    lies: dict[str, str] = {}  # thing: where it lies
    free = dice.sample(THINGS, 2)
    lines: list[str] = []
    for _ in range(dice.randint(1, 7)):
        who = dice.choice(people)
        carried = [thing for thing, owner in has.items() if owner == who]
        if carried and dice.random() < 0.3:
            thing = dice.choice(carried)
            del has[thing]
            lies[thing] = at[who]
            lines.append(f"{who} put down the {thing} .")
        elif at[who] and free and dice.random() < 0.45:
            thing = free.pop()
            has[thing] = who
            lines.append(f"{who} took the {thing} .")
        else:
            at[who] = dice.choice([place for place in PLACES if place != at[who]])
            lines.append(f"{who} {dice.choice(('went', 'walked', 'ran'))} to the {at[who]} .")
    asked = [(f"Where is {who} ?", place) for who, place in at.items() if place]
    asked += [(f"Where is the {thing} ?", at[owner]) for thing, owner in has.items()]
    asked += [(f"Where is the {thing} ?", place) for thing, place in lies.items()]
    asked += [(f"Who has the {thing} ?", owner) for thing, owner in has.items()]
    question, answer = dice.choice(asked)
    return " ".join(lines), question, answer


def stories(count: int, *, part: str, seed: int) -> list[tuple[str, str, str]]:
    """So many."""
    dice = random.Random(f"{seed} {part}")
    return [story(dice) for _ in range(count)]
