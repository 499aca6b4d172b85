# bash completion for braid(1). Verbs and options come from the program's own help, names from its
# catalogue, so that this file needs no change when they do.

_braid_options() {
  "$1" ${2:+"$2"} --help-all 2>/dev/null | grep -oE '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u
}

_braid_verbs() {
  "$1" --help 2>/dev/null | sed -nE '/^Subcommands:/,/^$/ s/^  ([a-z][a-z-]*) .*/\1/p'
}

_braid_names() {
  "$1" list "$2" 2>/dev/null | sed -nE '3,$ s/^ *([a-z0-9][a-z0-9._-]*).*/\1/p'
}

# What --help says that an option takes, as `--to TEXT:{megatron,deepspeed}`.
_braid_values() {
  "$1" "$2" --help-all 2>/dev/null | sed -nE "s/^ +(-[a-z],)?$3 [A-Z]+:\\{([^}]*)\\}.*/\\2/p" | tr ',' ' '
}

_braid() {
  local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local verb=${COMP_WORDS[1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$(_braid_verbs "$program") --help" -- "$cur")
    return
  fi
  case $prev in
    --cluster) mapfile -t COMPREPLY < <(compgen -W "$(_braid_names "$program" clusters)" -f -- "$cur") ;;
    --chip) mapfile -t COMPREPLY < <(compgen -W "$(_braid_names "$program" chips)" -f -- "$cur") ;;
    --planner | --planners)
      mapfile -t COMPREPLY < <(compgen -W "$(_braid_names "$program" planners)" -- "$cur")
      ;;
    --for) mapfile -t COMPREPLY < <(compgen -W "$(_braid_names "$program" trainers)" -f -- "$cur") ;;
    --precision) mapfile -t COMPREPLY < <(compgen -W 'bf16 fp16 fp8 tf32 fp32' -- "$cur") ;;
    --compat) mapfile -t COMPREPLY < <(compgen -W 'dfmodel' -- "$cur") ;;
    --style) mapfile -t COMPREPLY < <(compgen -W 'dataflow kernel-by-kernel' -- "$cur") ;;
    --search) mapfile -t COMPREPLY < <(compgen -W 'roles shapes' -- "$cur") ;;
    --*)
      mapfile -t COMPREPLY < <(compgen -W "$(_braid_values "$program" "$verb" "$prev")" -- "$cur")
      if [[ $verb$prev == map--sharding ]]; then mapfile -t COMPREPLY < <(compgen -W 'joint grid' -- "$cur"); fi
      ;;
  esac
  if ((${#COMPREPLY[@]} > 0)); then return; fi
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_braid_options "$program" "$verb")" -- "$cur")
    return
  fi
  local words=
  case $verb in
    plan | evaluate | compare | profile | map) words=$(_braid_names "$program" models) ;;
    list) words='models chips clusters planners trainers' ;;
    show)
      words="$(_braid_names "$program" models) $(_braid_names "$program" chips)
             $(_braid_names "$program" clusters) $(_braid_names "$program" planners)
             $(_braid_names "$program" trainers)"
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -f -- "$cur")
}

complete -o filenames -F _braid braid
