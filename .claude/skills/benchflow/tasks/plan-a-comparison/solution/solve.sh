#!/bin/sh
cat > /app/compare.sh <<'END'
bench eval create -t tasks -a claude-agent-acp -m anthropic/claude-haiku-4-5,anthropic/claude-sonnet-4-6 --trials 3 -e docker --max-cost 20 --job-name haiku-or-sonnet
bench eval compare haiku-or-sonnet
END
