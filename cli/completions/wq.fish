# Completion of wq(1) for fish.

function __wq_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and contains -- $words[2] $argv
end

# `wq run` is still at its options: no word of a command has come.
function __wq_options
    __wq_command run; or return
    set -l words (commandline -opc)[3..]
    contains -- -- $words; and return 1
    while test (count $words) -gt 0
        switch $words[1]
            case -a -d -j -n --aging --arg-file --backoff --burst --dead --debounce --delimiter --grace --group-by --group-jobs --group-rate --halt --http --jobs --kill-after --command-wait \
                    --leftover --log --max-args --max-queue --max-wait --merge --metrics-file --name --on-term --rate --results --retries \
                    --socket --socket-group --socket-mode --timeout --value-after
                set -e words[1]
            case '-*'
            case '*'
                return 1
        end
        set -e words[1]
    end
end

# The keys of the run that WQ_SOCKET names, as far as it tells them within a second.
function __wq_keys
    timeout 1 wq ls -0 --limit=200 $argv 2>/dev/null | string split0
end

complete -c wq -f
complete -c wq -n __fish_use_subcommand -l version -d 'Show the version'
complete -c wq -n __fish_use_subcommand -l help -d 'Show the commands'
for line in 'run	read keys and run a command for each' 'add	add keys' 'status	print the state of a run' 'top	show it live' \
        'ls	the keys of a run' 'retry	run keys now' 'cancel	cancel keys' 'forget	forget failures of keys' \
        'pause	start no commands' 'resume	start commands again' 'set	change a run' 'wait	wait until keys are finished' \
        'drain	finish all keys and end' 'stop	end after running commands' 'help	help for one command'
    set -l pair (string split \t -- $line)
    complete -c wq -n __fish_use_subcommand -a $pair[1] -d $pair[2]
    complete -c wq -n '__wq_command help' -a $pair[1] -d $pair[2]
end

complete -c wq -n __wq_options -s 0 -l null -d 'Keys end with NUL'
complete -c wq -n __wq_options -s d -l delimiter -x -d 'Keys end with this character'
complete -c wq -n __wq_options -l value-after -x -d 'Lines are a key, this, and its value'
complete -c wq -n __wq_options -l merge -x -a 'last first append or' -d 'Which value of a key that merges counts'
complete -c wq -n __wq_options -s a -l arg-file -r -F -d 'Read keys from this file'
complete -c wq -n __wq_options -l max-queue -x -d 'Stop reading while this many keys are queued or waiting'
complete -c wq -n __wq_options -l socket -r -F -d 'Take keys and commands from other processes'
complete -c wq -n __wq_options -l socket-mode -x -a '0600 0660 0666' -d 'Let others add keys'
complete -c wq -n __wq_options -l socket-group -x -a '(__fish_complete_groups)' -d 'The group of the socket'
complete -c wq -n __wq_options -s j -l jobs -x -d 'Commands at once'
complete -c wq -n __wq_options -s n -l max-args -x -d 'Keys of one command'
complete -c wq -n __wq_options -l timeout -x -d 'Terminate a command that runs for longer'
complete -c wq -n __wq_options -l command-wait -x -d 'How long a command that cannot be executed is waited for'
complete -c wq -n __wq_options -l kill-after -x -d 'Kill it if it has not ended'
complete -c wq -n __wq_options -l rate -x -d 'Start at most this many'
complete -c wq -n __wq_options -l burst -x -d 'Start up to this many at once after idle time'
complete -c wq -n __wq_options -l group-by -x -d 'The group of a key is what stands before this'
complete -c wq -n __wq_options -l group-jobs -x -d 'Commands at once for each group'
complete -c wq -n __wq_options -l group-rate -x -d 'Start at most this many for each group'
complete -c wq -n __wq_options -l aging -x -d 'Raise the priority of a queued key after each such time'
complete -c wq -n __wq_options -l dry-run -d 'Print the commands, run none'
complete -c wq -n __wq_options -l retries -x -a 'forever 0 1 3 10' -d 'How often to retry'
complete -c wq -n __wq_options -l backoff -x -d 'How long failed keys wait'
complete -c wq -n __wq_options -l jitter -f -a 'none full equal decorrelated' -d 'Randomise these times'
complete -c wq -n __wq_options -l halt -x -a 'never soon now soon,fail=3 now,fail=10%' -d 'Stop when keys are dead'
complete -c wq -n __wq_options -l dead -r -F -d 'Append dead keys'
complete -c wq -n __wq_options -l debounce -x -d 'Run a key this long after its last add'
complete -c wq -n __wq_options -l max-wait -x -d 'But at the latest this long after its first add'
complete -c wq -n __wq_options -s k -l keep-order -d 'Show outputs in the order of keys'
complete -c wq -n __wq_options -l tag -d 'Each line begins with the key'
complete -c wq -n __wq_options -l line-buffer -d 'Show each line at once'
complete -c wq -n __wq_options -l results -x -a '(__fish_complete_directories)' -d 'Write output to files'
complete -c wq -n __wq_options -l log -r -F -d 'Append a JSON object for each attempt'
complete -c wq -n __wq_options -l summary -d 'Say at the end what became of all keys'
complete -c wq -n __wq_options -l no-progress -d 'No line of progress'
complete -c wq -n __wq_options -s q -l quiet -d 'Say nothing but errors'
complete -c wq -n __wq_options -s v -l verbose -d 'Say why attempts failed'
complete -c wq -n __wq_options -s h -l help -d 'Show the options'
complete -c wq -n __wq_options -l http -x -d 'Serve metrics and a page'
complete -c wq -n __wq_options -l metrics-file -r -F -d 'Write metrics at the end'
complete -c wq -n __wq_options -l name -x -d 'Name of the queue'
complete -c wq -n __wq_options -l on-term -x -a 'finish drain' -d 'What the first signal does'
complete -c wq -n __wq_options -l grace -x -d 'After the second signal, kill after this time'
complete -c wq -n __wq_options -l leftover -r -F -d 'Write unfinished keys'
complete -c wq -n '__wq_command run' -x -a '(__fish_complete_subcommand --fcs-skip=2)'

set -l orders add status top ls retry cancel forget pause resume set wait drain stop
complete -c wq -n "__wq_command $orders" -s s -l socket -r -F -d 'The run'
complete -c wq -n "__wq_command $orders" -l timeout -x -d 'Exit after this time'
complete -c wq -n "__wq_command $orders" -s h -l help -d 'Show the options'
complete -c wq -n '__wq_command add' -l after -x -d 'Run them after this time'
complete -c wq -n '__wq_command add' -l priority -x -d 'Higher runs sooner'
complete -c wq -n '__wq_command add' -l value -x -d 'Their value'
complete -c wq -n '__wq_command add' -l wait -d 'Wait until they are finished'
complete -c wq -n '__wq_command add' -s v -l verbose -d 'Say how many there were'
complete -c wq -n '__wq_command add ls' -s 0 -l null -d 'Keys end with NUL'
complete -c wq -n '__wq_command status ls' -l json -d 'As JSON'
complete -c wq -n '__wq_command top' -l interval -x -d 'Refresh interval'
complete -c wq -n '__wq_command ls' -l state -x -a 'queued running waiting dead' -d 'Keys that are'
complete -c wq -n '__wq_command ls' -l limit -x -d 'No more than that'
complete -c wq -n '__wq_command cancel' -l kill -d 'Also terminate its command'
complete -c wq -n '__wq_command drain stop' -l no-wait -d 'Do not wait for the end'
complete -c wq -n '__wq_command retry cancel forget wait' -a '(__wq_keys)'
complete -c wq -n '__wq_command retry forget' -a '(__wq_keys --state=dead)'
complete -c wq -n '__wq_command set' -a 'workers= rate= burst='
