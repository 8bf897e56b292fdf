# fish completion of workbox(1), which is asked for every word.

function __workbox_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    for line in (command $before[1] complete -- $before[2..-1] "$word" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (string replace -r '^--[a-z-]+=' '' -- "$word")
            case ':dirs'
                __fish_complete_directories (string replace -r '^--[a-z-]+=' '' -- "$word")
            case '*'
                echo $line
        end
    end
end

complete -c workbox -f -a '(__workbox_complete)'
