"""Metrics in the text format of Prometheus: counts and latencies, without texts, keys or addresses."""

from regard.serving.model_pool import ModelPool

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts of requests by route and status, and a histogram of their latency by route."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Count one request. Unknown paths are one route, "other", so that there are few labels."""
        self._requests[route, status] = self._requests.get((route, status), 0) + 1
        buckets = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
        buckets[next((index for index, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))] += 1
        self._sums[route] = self._sums.get(route, 0.0) + seconds

    def text(self, pool: ModelPool) -> str:
        """All metrics in the text format of Prometheus."""
        lines = [
            "# HELP regard_requests_total Requests answered.",
            "# TYPE regard_requests_total counter",
            *(
                f'regard_requests_total{{route="{route}",status="{status}"}} {count}'
                for (route, status), count in sorted(self._requests.items())
            ),
            "# HELP regard_request_seconds Time from a request to its answer.",
            "# TYPE regard_request_seconds histogram",
        ]
        for route, buckets in sorted(self._buckets.items()):
            cumulative = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                cumulative += count
                lines.append(f'regard_request_seconds_bucket{{route="{route}",le="{bound}"}} {cumulative}')
            lines.append(f'regard_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
            lines.append(f'regard_request_seconds_count{{route="{route}"}} {cumulative}')
        for name, kind, help_text, field in (
            ("texts_total", "counter", "Texts translated.", "texts"),
            ("characters_total", "counter", "Characters translated.", "characters"),
            ("batches_total", "counter", "Batches they were translated in.", "batches"),
            ("failed_total", "counter", "Texts that could not be translated.", "failed"),
            ("refused_total", "counter", "Texts refused because too many were waiting.", "refused"),
            ("timed_out_total", "counter", "Texts that waited too long.", "timed_out"),
            ("abandoned_total", "counter", "Texts whose client had left.", "abandoned"),
        ):
            lines += [f"# HELP regard_{name} {help_text}", f"# TYPE regard_{name} {kind}"]
            for model in pool.models:
                if model.batcher is not None:
                    value = getattr(model.batcher.counters, field)
                    lines.append(f'regard_{name}{{model="{_escape_label(model.name)}"}} {value}')
        lines += ["# HELP regard_queue_length Texts in the queue.", "# TYPE regard_queue_length gauge"]
        for model in pool.models:
            if model.batcher is not None:
                lines.append(f'regard_queue_length{{model="{_escape_label(model.name)}"}} {model.batcher.queue_length}')
        lines += ["# HELP regard_ready Whether all models are loaded.", "# TYPE regard_ready gauge"]
        lines.append(f"regard_ready {int(pool.ready)}")
        return "\n".join(lines) + "\n"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
