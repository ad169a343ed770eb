#compdef segue
_segue() {
  local line files=0
  local -a found
  while IFS= read -r line; do
    if [[ $line == :files ]]; then files=1
    else found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); fi
  done < <(segue completion --for -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#found} )) && _describe segue found
  (( files )) && _files
}
if [ "$funcstack[1]" = _segue ]; then _segue "$@"; else compdef _segue segue; fi
