#!/bin/sh
t=/app/tasks/count-lines
mkdir -p $t/environment $t/solution $t/tests
cat > $t/task.toml <<'END'
schema_version = "1.4"

[agent]
timeout_sec = 300

[verifier]
timeout_sec = 60
END
echo 'Write the number of lines of `/app/input.txt`, as a number alone, to `/app/count.txt`.' > $t/instruction.md
printf 'FROM debian:bookworm-slim\nWORKDIR /app\nCOPY input.txt .\n' > $t/environment/Dockerfile
seq 7 > $t/environment/input.txt
cat > $t/solution/solve.sh <<'END'
#!/bin/sh
wc -l < /app/input.txt | tr -d ' ' > /app/count.txt
END
cat > $t/tests/test.sh <<'END'
#!/bin/sh
reward=0
[ "$(cat /app/count.txt 2>/dev/null)" = 7 ] && reward=1
echo "$reward" > /logs/verifier/reward.txt
END
