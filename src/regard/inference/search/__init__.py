"""Search algorithms over any decoder, each in its own file: greedy, beam, constrained beam, sampling, classes."""
