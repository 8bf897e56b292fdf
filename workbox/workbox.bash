# bash completion of workbox(1), which is asked for every word.

_workbox()
{
	local IFS=$'\n' line cur joined=() i lead files=

	# bash has split words at `=' and `:'; workbox wants them as written.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		if ((${#joined[@]} > 0)) &&
		    [[ ${COMP_WORDS[i]} == [=:]* ||
		    ${COMP_WORDS[i - 1]} == *[=:] ]]; then
			joined[${#joined[@]} - 1]+=${COMP_WORDS[i]}
		else
			joined+=("${COMP_WORDS[i]}")
		fi
	done
	cur=${joined[${#joined[@]} - 1]}
	# what stands before the part that bash replaces
	lead=${cur%"${COMP_WORDS[COMP_CWORD]#[=:]}"}
	COMPREPLY=()
	while read -r line; do
		case $line in
		:files)	files=-f ;;
		:dirs)	files=-d ;;
		*)	line=${line%%$'\t'*}
			COMPREPLY+=("${line#"$lead"}") ;;
		esac
	done < <("$1" complete -- "${joined[@]}" 2>/dev/null)
	if [[ -n $files ]]; then
		compopt -o filenames 2>/dev/null
		while read -r line; do
			COMPREPLY+=("$line")
		done < <(compgen "$files" -- "${cur#"$lead"}")
	fi
}
complete -F _workbox workbox
