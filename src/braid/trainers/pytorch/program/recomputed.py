def recomputed(function):
    """Keeps what it is given alone, and is computed again before its backward pass."""
    return partial(checkpoint, function, use_reentrant=False)
