config = TrialConfig(
task_path=task_path,
scenes=[
Scene(name="skill-gen",
roles=[Role("gen", "gemini", "flash")],
turns=[Turn("gen", "Generate a skill document to /app/generated-skill.md")]),
Scene(name="solve",
roles=[Role("solver", "gemini", "flash")],
turns=[Turn("solver")]),
],
environment="daytona",
)
