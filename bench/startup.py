"""How long a person waits for `regard --help`: beside `python -c pass`, and beside importing PyTorch.

python -m bench.startup
"""

import subprocess
import sys

from bench.measure import Claim, medians, report


def command(*arguments: str):
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def main() -> None:
    times = medians(
        {
            "python -c pass": command("-c", "pass"),
            "regard --help": command("-m", "regard", "--help"),
            "import torch": command("-c", "import torch"),
        },
        seconds=30,
        min_rounds=11,
    )
    for name, seconds_taken in times.items():
        print(f"{name:<20} {seconds_taken:.3f} s")
    help_seconds = times["regard --help"]
    report(
        [
            Claim("regard --help, seconds", "(alone)", help_seconds, 0.25, at_most=True),
            Claim("regard --help", "import torch takes so much longer", times["import torch"] / help_seconds, 4.0),
            Claim(
                "regard --help",
                "so much longer than python -c pass",
                help_seconds / times["python -c pass"],
                20.0,
                at_most=True,
            ),
        ]
    )


if __name__ == "__main__":
    main()
