"""The hourly electric load of a small town, and its temperature: days, weeks, seasons and weather, as a table."""

import csv
import io
import math
import random
from datetime import datetime, timedelta

START = datetime(2024, 1, 1)
HOURLY_DEMAND = (  # of a working day, relative to its mean
    *(0.72, 0.68, 0.66, 0.65, 0.67, 0.76, 0.93, 1.08, 1.14, 1.12, 1.09, 1.08),
    *(1.10, 1.07, 1.03, 1.02, 1.07, 1.19, 1.28, 1.27, 1.19, 1.08, 0.94, 0.81),
)
WEEKEND_DEMAND = 0.82  # of a working day's
MEAN_LOAD = 40.0  # megawatts
COMFORTABLE = 17.0  # degrees Celsius: colder hours are heated
HEATING = 0.6  # megawatts a degree
WEATHER_MEMORY = 0.995  # of an hour's weather, the next hour keeps so much


def load_table(rows: int, *, first: int = 0, seed: int = 1) -> str:
    """CSV with the columns time, load and temperature: hours `first` to `first + rows` of one course of weather."""
    generator = random.Random(f"loads {seed}")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "load", "temperature"])
    weather = 0.0
    for hour in range(first + rows):
        weather = WEATHER_MEMORY * weather + generator.gauss(0, 0.5)
        noise = generator.gauss(0, 0.6)
        if hour < first:
            continue
        time = START + timedelta(hours=hour)
        temperature = _normal_temperature(time) + weather
        writer.writerow([time.isoformat(sep=" "), f"{_load(time, temperature) + noise:.2f}", f"{temperature:.1f}"])
    return text.getvalue()


def _normal_temperature(time: datetime) -> float:
    """Of the day of the year and the hour: coldest in late January and before sunrise."""
    day = time.timetuple().tm_yday - 25
    return 11.0 - 9.0 * math.cos(2 * math.pi * day / 365) - 4.0 * math.cos(2 * math.pi * (time.hour - 4) / 24)


def _load(time: datetime, temperature: float) -> float:
    demand = HOURLY_DEMAND[time.hour] * (WEEKEND_DEMAND if time.weekday() >= 5 else 1.0)
    return MEAN_LOAD * demand + HEATING * max(0.0, COMFORTABLE - temperature)
