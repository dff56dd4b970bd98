# Completion of wq(1) for bash; needs nothing else, and uses bash-completion for the command behind `wq run` if it is there.

# _wq_reply <text>: the words of it that begin with what is there already
_wq_reply() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
	# Those that end with = go on with a value.
	[[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
	return 0
}

_wq_files() {
	compopt -o filenames
	mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

# _wq_keys [OPTION]: the keys of the run that is meant, as far as it tells them within a second.
_wq_keys() {
	local at=() key i
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -s ]] && at=(-s "${COMP_WORDS[i + 1]}")
		[[ ${COMP_WORDS[i]} == --socket && ${COMP_WORDS[i + 1]} == = ]] && at=(-s "${COMP_WORDS[i + 2]}")
	done
	while IFS= read -r -d '' key; do
		[[ $key == "$cur"* ]] && COMPREPLY+=("$(printf %q "$key")")
	done < <(timeout 1 "${COMP_WORDS[0]}" ls -0 --limit=200 "$@" "${at[@]}" 2>/dev/null)
}

# _wq_value <option>: the value of it; false if it has none
_wq_value() {
	case $1 in
	-a | --arg-file | --dead | --leftover | --log | --metrics-file | --socket | -s) _wq_files -f ;;
	--results) _wq_files -d ;;
	--jitter) [[ $assigned ]] && _wq_reply "none full equal decorrelated" ;;
	--halt) _wq_reply "never soon now soon,fail= now,fail=" ;;
	--on-term) _wq_reply "finish drain" ;;
	--socket-mode) _wq_reply "0600 0660 0666" ;;
	--socket-group) mapfile -t COMPREPLY < <(compgen -g -- "$cur") ;;
	--retries) _wq_reply "forever 0 1 3 10" ;;
	--merge) _wq_reply "last first append or" ;;
	--state) _wq_reply "queued running waiting dead" ;;
	-d | --delimiter | --max-queue | -j | --jobs | -n | --max-args | --timeout | --kill-after | --rate | --burst | \
		--backoff | --debounce | --command-wait | --max-wait | --http | --name | --grace | --after | --interval | --limit | \
		--value-after | --group-by | --group-jobs | --group-rate | --aging | --priority | --value) ;;
	*) return 1 ;;
	esac
}

_wq_run() {
	local i=2 word
	# Behind the options it is a command's line, not ours.
	while ((i < COMP_CWORD)); do
		word=${COMP_WORDS[i]}
		case $word in
		--)
			((i++))
			break
			;;
		-[adjn] | --*)
			if [[ ${COMP_WORDS[i + 1]} == = ]]; then
				((i += 2))
			elif _wq_takes_value "$word"; then
				((i++))
			fi
			;;
		-*) ;;
		*) break ;;
		esac
		((i++))
	done
	if ((i < COMP_CWORD)) || [[ $i == "$COMP_CWORD" && ${COMP_WORDS[i - 1]} == -- ]]; then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$i"
		elif ((i == COMP_CWORD)); then
			_wq_files -c
		else
			_wq_files -f
		fi
		return
	fi
	_wq_value "$option" && return
	if [[ $cur == -* ]]; then
		_wq_reply "-0 --null -d --delimiter= --value-after= --merge= -a --arg-file= --max-queue= --socket= --socket-mode= --socket-group= -j --jobs=
			-n --max-args= --timeout= --kill-after= --command-wait= --rate= --burst=
			--group-by= --group-jobs= --group-rate= --aging= --dry-run --retries= --backoff= --jitter --jitter=
			--halt= --dead= --debounce= --max-wait= -k --keep-order --tag
			--line-buffer --results= --log= --summary --no-progress -q --quiet -v --verbose -h --help --http=
			--metrics-file= --name= --on-term= --grace= --leftover="
	else
		_wq_files -c
	fi
}

# Of the options of `wq run`, does it take the next word?
_wq_takes_value() {
	case $1 in
	-a | -d | -j | -n | --aging | --arg-file | --backoff | --burst | --dead | --debounce | --delimiter | --grace | --group-by | --group-jobs | \
		--group-rate | --halt | --http | --jobs | --merge | --value-after | \
		--command-wait | --kill-after | --leftover | --log | --max-args | --max-queue | --max-wait | --metrics-file | \
		--name | --on-term | --rate | --results | --retries | --socket | --socket-group | --socket-mode | --timeout) ;;
	*) return 1 ;;
	esac
}

_wq() {
	local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} assigned='' common="-s --socket= --timeout= -h --help"
	COMPREPLY=()
	# Of --option=value, bash makes three words.
	if [[ $cur == = ]]; then
		cur='' assigned=1
	elif [[ $option == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]} assigned=1
	fi
	if ((COMP_CWORD == 1)); then
		_wq_reply "run add status top ls retry cancel forget pause resume set wait drain stop help --version --help"
		return
	fi
	if [[ ${COMP_WORDS[1]} == run ]]; then
		_wq_run
		return
	fi
	_wq_value "$option" && return
	case ${COMP_WORDS[1]} in
	help) _wq_reply "run add status top ls retry cancel forget pause resume set wait drain stop" ;;
	add) _wq_reply "$common --after= --priority= --value= --wait -0 --null -v --verbose" ;;
	status) _wq_reply "$common --json" ;;
	top) _wq_reply "$common --interval=" ;;
	ls) _wq_reply "$common --state= --limit= --json -0 --null" ;;
	set) if [[ $cur == -* ]]; then _wq_reply "$common"; else _wq_reply "workers= rate= burst="; fi ;;
	cancel) if [[ $cur == -* ]]; then _wq_reply "$common --kill"; else _wq_keys; fi ;;
	wait) if [[ $cur == -* ]]; then _wq_reply "$common"; else _wq_keys; fi ;;
	retry | forget) if [[ $cur == -* ]]; then _wq_reply "$common"; else _wq_keys && _wq_keys --state=dead; fi ;;
	drain | stop) _wq_reply "$common --no-wait" ;;
	pause | resume) _wq_reply "$common" ;;
	esac
}

complete -F _wq wq
