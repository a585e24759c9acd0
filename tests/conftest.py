"""Common to all tests: one thread each, as they run side by side, and no deadlines, as machines are noisy."""

import os

# What torch.compile kept from an earlier version of our operators would be run in place of the present one.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile("default", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
