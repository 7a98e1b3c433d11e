from benchflow.trial import TrialConfig, Scene, Role, Turn
# Single-agent (simplest)
config = TrialConfig(
task_path=Path("tasks/my-task"),
scenes=[Scene.single(agent="gemini", model="gemini-3.1-flash-lite-preview")],
environment="daytona",
sandbox_setup_timeout=120,
)
# Multi-scene BYOS (skill-gen → solve)
config = TrialConfig(
task_path=Path("tasks/my-task"),
scenes=[
Scene(name="prep", roles=[Role("gen", "gemini", "gemini-3.1-flash-lite-preview")],
turns=[Turn("gen", "Generate a skill for this task...")]),
Scene(name="solve", roles=[Role("solver", "gemini", "gemini-3.1-flash-lite-preview")],
turns=[Turn("solver")]),
],
environment="daytona",
sandbox_setup_timeout=120,
)
