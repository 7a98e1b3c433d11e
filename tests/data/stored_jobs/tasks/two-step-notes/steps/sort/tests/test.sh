#!/bin/sh
failed=
. "$(dirname "$0")/lib.sh"
same /app/notes/todo.txt 'call Grace
mend the bicycle
water the plants'
same /app/notes/idea.txt 'a lamp that knows the time
bread with figs'
same /app/notes/done.txt 'pay the rent
write to Ada'
finish
