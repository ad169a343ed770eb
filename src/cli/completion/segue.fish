function __segue_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in (segue completion --for -- $words[2..-1] 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c segue -f -a '(__segue_complete)'
