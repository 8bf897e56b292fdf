# fish completion of workbox(1), which is asked for every word.

function __workbox_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    # `--name=' in front of a value stays in front of what is completed
    set -l lead (string match -r '^--[a-z-]+=' -- "$word")
    set -l value (string replace -r '^--[a-z-]+=' '' -- "$word")
    for line in (command $before[1] complete -- $before[2..-1] "$word" \
            2>/dev/null)
        switch $line
            case ':files'
                for path in (__fish_complete_path "$value")
                    echo "$lead$path"
                end
            case ':dirs'
                for path in (__fish_complete_directories "$value")
                    echo "$lead$path"
                end
            case '*'
                echo $line
        end
    end
end

complete -c workbox -f -a '(__workbox_complete)'
