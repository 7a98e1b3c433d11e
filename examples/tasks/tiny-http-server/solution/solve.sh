#!/bin/sh
set -e
cp "$(dirname "$0")/server.py" /app/server.py
nohup python3 /app/server.py > /tmp/server.log 2>&1 &
for _ in 1 2 3 4 5 6 7 8 9 10; do
    python3 -c 'import socket; socket.create_connection(("127.0.0.1", 8080), 1)' 2>/dev/null && exit 0
    sleep 0.3
done
cat /tmp/server.log
exit 1
