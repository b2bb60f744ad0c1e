"""Where items come from, a loader each."""
