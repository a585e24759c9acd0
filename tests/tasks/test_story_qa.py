"""Stories and questions."""

from typing import Any, cast

from regard.inference.predictor import Predictor
from regard.tasks.base import Task, get_task
from regard.tasks.story_qa import StoryQA


class Recorder:
    """Records what is predicted."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def predict(self, inputs: Any, **options: Any) -> Any:
        self.calls.append((inputs, options))
        return inputs


def test_a_story_and_its_question_are_two_arguments_or_one(monkeypatch: Any) -> None:
    monkeypatch.setattr(Task, "verbs", lambda self, predictor: {"predict": predictor.predict})
    recorder = Recorder()
    task = get_task("story_qa")
    assert isinstance(task, StoryQA)
    answer = task.verbs(cast(Predictor, recorder))["answer"]
    answer("Mary is here.", "Where is Mary?", beam=2)
    answer("Mary is here.\tWhere is Mary?")
    answer(["a\tb", "c\td"])
    assert recorder.calls == [
        ("Mary is here.\tWhere is Mary?", {"beam": 2}),
        ("Mary is here.\tWhere is Mary?", {}),
        (["a\tb", "c\td"], {}),
    ]
