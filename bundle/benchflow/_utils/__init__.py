"""Module names of the older documents."""
