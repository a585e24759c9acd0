"""BLEU's tokenizer is detected from the script of the text."""

import pytest

from regard.evaluation.bleu_tokenizers import detect_tokenizer


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The cat sat on the mat.", "13a"),
        ("Кошка сидела на коврике.", "13a"),
        ("고양이가 매트 위에 앉았다.", "13a"),
        ("جلست القطة على الحصيرة", "13a"),
        ("बिल्ली चटाई पर बैठी", "13a"),
        ("猫坐在垫子上。", "zh"),
        ("他在 Google 和 Apple 工作过很多年，现在住在北京。", "zh"),
        ("猫がマットの上に座った。", "char"),
        ("彼はカメラを買った", "char"),
        ("แมวนั่งบนเสื่อ", "char"),
        ("ແມວນັ່ງຢູ່ເທິງເສື່ອ", "char"),
        ("ကြောင်ထိုင်နေသည်", "char"),
        ("ឆ្មាអង្គុយលើកន្ទេល", "char"),
        ("A book called 道德经, by a man of old, in a good translation", "13a"),
        ("2022-03-03", "13a"),
        ("", "13a"),
    ],
)
def test_the_tokenizer_is_detected_from_the_script(text: str, name: str) -> None:
    assert detect_tokenizer([text]) == name
    assert detect_tokenizer([text] * 20) == name


def test_one_line_in_another_script_does_not_change_the_tokenizer() -> None:
    assert detect_tokenizer(["The cat sat on the mat."] * 50 + ["猫がマットの上に座った。"]) == "13a"


def test_every_detected_tokenizer_exists_in_sacrebleu() -> None:
    from sacrebleu.metrics.bleu import BLEU

    assert {"13a", "zh", "char"} <= set(BLEU.TOKENIZERS)


def test_the_default_tokenizer_is_13a() -> None:
    assert detect_tokenizer([]) == "13a"
