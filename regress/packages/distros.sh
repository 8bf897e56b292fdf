#!/bin/sh
# distros.sh: what etc/install.sh would have another distribution's package
# manager install, with one that only notes what it is asked: the names in its
# column of etc/packages, none twice, none that is there, and the word that
# nobody has tried them.
. "$(dirname "$0")/../box/lib.sh"

bin=$work/bin
asks() {	# manager query column
	rm -rf "$bin"
	mkdir "$bin"
	for c in sh awk tr grep cat; do
		ln -s "$(command -v $c)" "$bin/$c"
	done
	# make is there; what is no question is noted
	cat >"$bin/$1" <<END
#!/bin/sh
case "\$1 \$2" in
'-Q '*)		[ "\$2" = make ] ;;
'info -e')	[ "\$3" = make ] ;;
*)		echo "\$*" >>"$work/asked" ;;
esac
END
	[ "$2" = "$1" ] ||
	    printf '#!/bin/sh\n[ "$2" = make ]\n' >"$bin/$2"
	chmod 755 "$bin/$1" "$bin/$2"
	rm -f "$work/asked"
	# as install.sh has it
	out=$(env -i PATH="$bin" sh -c 'top=$1 work=$2 pkg_new=
	    . "$1/etc/steps.sh"; step_packages build run' sh "$top" "$work")
	like "$1: says that it is untested" "$out" '^untested: '
	is "$1: is asked once" "$(wc -l <"$work/asked")" 1
	is "$1: for its own names, of what is not there" \
	    "$(tr ' ' '\n' <"$work/asked" | grep -v -x -e install -e -y -e -q \
	    -e -Sy -e --noconfirm -e --needed -e add | sort)" \
	    "$(awk -v c="$3" '($1 == "build" || $1 == "run") && $c != "-" &&
	    $c != "make" { print $c }' "$top/etc/packages" | sort)"
}
asks dnf rpm 3
like "in its words" "$(cat "$work/asked")" '^install -y -q [a-z]'
asks pacman pacman 4
like "in its words" "$(cat "$work/asked")" '^-Sy --noconfirm --needed [a-z]'
asks apk apk 5
like "in its words" "$(cat "$work/asked")" '^add -q [a-z]'

for c in 2 3 4 5; do
	is "column $c: no name twice in a class" "$(awk -v c=$c \
	    '!/^#/ && $c != "-" { print $1, $c }' "$top/etc/packages" | sort |
	    uniq -d)" ''
done
is "each line has a class and four columns" \
    "$(awk '!/^#/ && NF != 5' "$top/etc/packages")" ''
box_done
