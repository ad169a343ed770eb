_segue() {
  local line cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = :files ]; then compopt -o default 2>/dev/null
      mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
    else COMPREPLY+=("${line%%$'\t'*}"); fi
  done < <(segue completion --for -- "${words[@]}" 2>/dev/null)
}
complete -F _segue segue
