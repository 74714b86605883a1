"""The engine that computes on a CPU: C sources, compiled before they reach the user, and their interface."""
