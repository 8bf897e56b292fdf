#!/bin/sh
# A text file as a C string: sh text2c.sh NAME FILE
set -eu
echo "static const char $1[] ="
sed -e 's/\\/&&/g' -e 's/"/\\&/g' -e 's/^/"/' -e 's/$/\\n"/' "$2"
echo ";"
