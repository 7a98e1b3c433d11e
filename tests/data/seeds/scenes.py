from benchflow.trial import Scene, Role, Turn
# Single-role shortcut
scene = Scene.single(agent="gemini", model="gemini-3.1-flash-lite-preview")
# Multi-role with turn order (coder-reviewer pattern)
# Agents communicate via outbox: write /app/.outbox/{recipient}.json
# Scheduler reads outbox after each turn, injects into next role's prompt
scene = Scene(
name="coder-reviewer",
roles=[
Role("coder", "gemini", "gemini-3.1-flash-lite-preview"),
Role("reviewer", "gemini", "gemini-3.1-flash-lite-preview"),
],
turns=[
Turn("coder"), # None prompt = instruction.md
Turn("reviewer", "Review the code. Write feedback to "
'/app/.outbox/coder.json as {"to":"coder","content":"..."}'),
Turn("coder", "Fix the issues."), # reviewer's feedback auto-injected
],
)
