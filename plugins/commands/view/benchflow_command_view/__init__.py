"""`bench view`: jobs, rollouts and sessions in a browser."""
