"""What decides the next prompt: scenes, users, loops, each a driver."""
