#!/bin/sh
failed=
. "$(dirname "$0")/lib.sh"
same /app/notes/todo.txt 'buy figs
call Grace
mend the bicycle
water the plants'
same /app/notes/idea.txt 'a garden on the roof
a lamp that knows the time
bread with figs'
same /app/notes/done.txt 'mend the bicycle
pay the rent
write to Ada'
same /app/report.txt 'done: 3
idea: 3
todo: 4'
finish
