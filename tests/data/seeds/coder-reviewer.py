config = TrialConfig(
task_path=task_path,
scenes=[Scene(
roles=[Role("coder", "gemini", "flash"), Role("reviewer", "gemini", "flash")],
turns=[
Turn("coder"),
Turn("reviewer", "Review /app/. Write feedback to /app/.outbox/coder.json"),
Turn("coder", "Read feedback and fix."),
],
)],
environment="daytona",
)
