#!/bin/bash
set -e
exec 3<>/dev/tcp/inventory/8000
printf 'GET /stock.csv HTTP/1.0\r\nHost: inventory\r\n\r\n' >&3
sum=0
while IFS=, read -r name quantity; do
    [[ $quantity =~ ^[0-9]+$ ]] && sum=$((sum + quantity))
done <&3
echo "$sum" > /app/total.txt
