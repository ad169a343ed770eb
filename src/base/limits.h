/* limits.h - every bound of the program in one place: name, unit, reason.
 *
 * Nothing in segue waits, grows, retries or nests without one of these. A limit that a user can
 * meet is named in the message that reports it. */
#ifndef SEGUE_BASE_LIMITS_H
#define SEGUE_BASE_LIMITS_H

/* --- workflow files --- */
#define LIMIT_WORKFLOW_BYTES (1024u * 1024u) /* a workflow file; larger is a mistake */
#define LIMIT_FACET_BYTES    (256u * 1024u)  /* one facet file */
#define LIMIT_SCENARIO_BYTES (16u * 1024u * 1024u)
#define LIMIT_CONFIG_BYTES   (64u * 1024u)
#define LIMIT_MOVEMENT_COUNT 1000u
#define LIMIT_GROUP_COUNT    64u           /* children of one movement */
#define LIMIT_ITEM_COUNT     10000u        /* of one for_each */
#define LIMIT_ITEMS_AT_ONCE  4u            /* when a for_each names no number */
#define LIMIT_RULE_COUNT     100u          /* rules of one movement */
#define LIMIT_CALL_DEPTH     16u           /* workflows and fragments that call each other */
#define LIMIT_CALL_COUNT     1000u         /* calls in one workflow, nested ones included */
#define LIMIT_PARAM_COUNT    64u           /* params of one file */
#define LIMIT_INPUT_BYTES    (64u * 1024u) /* of one value of a param */
#define LIMIT_RETURN_BYTES   (32u * 1024u) /* of one output of a session */
/* for all of them: they are kept with each session's row */
#define LIMIT_RETURNS_BYTES      (64u * 1024u)
#define LIMIT_FACET_LIST_COUNT   10000u                /* listed in one go */
#define LIMIT_FACET_FOLDER_COUNT 16u                   /* in config.yaml */
#define LIMIT_INCLUDE_DEPTH      8u                    /* {{include:...}} within each other */
#define LIMIT_REPORT_FILE_BYTES  (64u * 1024u * 1024u) /* for a report that is read back */
#define LIMIT_MONITOR_COUNT      100u                  /* loops that a workflow watches */
#define LIMIT_CYCLE_COUNT        100u                  /* movements of one loop */
#define LIMIT_CONTRACT_COUNT     16u                   /* reports of one movement */
#define LIMIT_YAML_DEPTH         64u
#define LIMIT_YAML_NODE_COUNT    200000u     /* after aliases, which stops an alias bomb */
#define LIMIT_FILE_ERROR_COUNT   50u         /* errors reported for one file, the rest is counted */
#define LIMIT_NAME_BYTES         128u        /* workflow, movement and facet names */
#define LIMIT_MOVEMENTS          1000000000u /* the highest max_movements that is a number */
#define LIMIT_DEFAULT_MOVEMENTS  10          /* max_movements when the file names none */
#define LIMIT_ARGV_COUNT         256u
#define LIMIT_LS_PROOF_BYTES     (4u * 1024u * 1024u)  /* logs whose chain a list checks */
#define LIMIT_LS_WATCH_MS        1000u                 /* between two lists of ls --watch */
#define LIMIT_LS_WATCH_COUNT     200                   /* sessions that it lists */
#define LIMIT_WINDOW_PROOF_BYTES (256u * 1024u)        /* the same for a page of them */
#define LIMIT_WINDOW_COUNT_LOGS  20u                   /* read to count sessions by status */
#define LIMIT_LS_BAD_BYTES       (64u * 1024u * 1024u) /* the same for ls -s bad */
/* turns that segue plan walks one by one */
#define LIMIT_PLAN_TURNS 10000
#define LIMIT_PLAN_RUNS  20u   /* past sessions whose use it reports */
#define LIMIT_PLAN_LOGS  2000u /* logs it searches for them, newest first */

/* --- texts --- */
#define LIMIT_TASK_BYTES         (8u * 1024u * 1024u)
#define LIMIT_CHOICE_COUNT       20u            /* answers that a question offers */
#define LIMIT_CHOICE_BYTES       200u           /* of one of them */
#define LIMIT_QUESTION_BYTES     (8u * 1024u)   /* one question to a person */
#define LIMIT_INPUTS_BYTES       (256u * 1024u) /* answers that a movement's prompt shows */
#define LIMIT_APPROVED_COUNT     100u           /* changed files that an approval lists */
#define LIMIT_TOUCHED_COUNT      1000u          /* and that a session keeps by name */
#define LIMIT_ANSWER_BYTES       (64u * 1024u)  /* one answer of a person: inline in the log */
#define LIMIT_STEER_BYTES        (16u * 1024u)  /* one thing that a person says to a session */
#define LIMIT_STEER_WAIT_MS      10000u /* segue steer waits so long for a running call to read */
#define LIMIT_STEER_POLL_MS      100u   /* and looks at its log so often */
#define LIMIT_STEER_COUNT        500u   /* of them in a session */
#define LIMIT_STEER_JUDGED_COUNT 20u    /* the last ones, which a judge is told */
#define LIMIT_STEER_JUDGED_BYTES 1000u  /* of each */
#define LIMIT_NOTICE_COUNT       1000u  /* notices waiting to be sent */
#define LIMIT_NOTICE_TRY_COUNT   12u    /* about half an hour with the next two bounds */
#define LIMIT_NOTICE_BASE_MS     1000
#define LIMIT_NOTICE_AGAIN_MS    600000u
#define LIMIT_NOTICE_RUN_MS      30000  /* default of notify's `timeout` */
#define LIMIT_NOTICE_LONG_MS     60000  /* a wait worth a notice */
#define LIMIT_NOTICE_OUTAGE      5      /* failed attempts of an outage: a minute, about */
#define LIMIT_NOTICE_STALL_MS    600000 /* silence; default of notify's `stall` */
#define LIMIT_DAY_BOOK_KEPT      40     /* days whose use is kept */
#define LIMIT_NOTICE_LOOK_MS     5000   /* shortest time between two checks for silence */
#define LIMIT_NOTICE_WORDS       64u    /* words of its command */
#define LIMIT_NOTICE_TITLE_BYTES 200u
#define LIMIT_NOTICE_TEXT_BYTES  4000u
#define LIMIT_NOTIFIED_BYTES     (4u * 1024u * 1024u)
#define LIMIT_INBOX_COUNT        10000u                /* questions of one inbox */
#define LIMIT_INBOX_FILE_COUNT   50u                   /* files shown for each approval in a list */
#define LIMIT_INBOX_TEXT_BYTES   2000u                 /* text shown for each question in a list */
#define LIMIT_WHY_BYTES          (4u * 1024u)          /* a person's reason for a verdict */
#define LIMIT_INLINE_TEXT_BYTES  (64u * 1024u)         /* longer texts go to blobs/ */
#define LIMIT_RENDER_BYTES       (4u * 1024u)          /* readable part of a blob, kept inline */
#define LIMIT_PROMPT_BYTES       (24u * 1024u * 1024u) /* one prompt, all parts */
#define LIMIT_JUDGE_TEXT_BYTES   (60u * 1024u) /* end of an agent's text that a judge is shown */
#define LIMIT_PROMPT_FILE_COUNT  20u           /* changed files named to a judge */
#define LIMIT_REF_TEXT_BYTES     32u           /* shorter texts are repeated, not referenced */
/* criteria and the like become a part of their own beyond this */
#define LIMIT_OWN_PART_BYTES 256u
#define LIMIT_LOG_LINE_BYTES (64u * 1024u * 1024u)
/* longest damaged end that resume --cut removes */
#define LIMIT_CUT_BYTES        (256u * 1024u * 1024u)
#define LIMIT_STRUCTURED_BYTES (1024u * 1024u) /* of a provider's structured value, as JSON */
#define LIMIT_STRUCTURED_DEPTH 64u
#define LIMIT_TEXTS_COUNT      20000u /* prompt pieces of one session kept for references */
#define LIMIT_ERROR_TEXT_BYTES 512u   /* one message in a record */

/* --- the window --- */
#define LIMIT_WINDOW_CODE_COUNT       8        /* codes that nobody has used yet */
#define LIMIT_WINDOW_CODE_MS          60000    /* how long a code is valid */
#define LIMIT_WINDOW_BROWSER_COUNT    16       /* browsers let in at a time */
#define LIMIT_WINDOW_IDLE_MS          43200000 /* 12 h: a browser away for longer is signed out */
#define LIMIT_WINDOW_CONNECTION_COUNT 64u
/* all header fields of a request, since other programs' cookies come too */
#define LIMIT_WINDOW_HEADER_BYTES     16384u
#define LIMIT_WINDOW_CONNECTION_BYTES 49152u /* so that they fit; touched only as needed */
#define LIMIT_WINDOW_SHORT_BYTES      8192u  /* of one whose request is short, as for pages */
#define LIMIT_WINDOW_SHORT_HEAD_BYTES 2048u
#define LIMIT_WINDOW_FIRST_BYTE_S     5 /* when a silent connection is accepted all the same */
#define LIMIT_WINDOW_BODY_BYTES       (1024u * 1024u)
#define LIMIT_WINDOW_STREAM_COUNT     4u   /* event streams of one browser; it stalls at six */
#define LIMIT_WINDOW_LOOK_MS          250  /* between two looks at logs that other programs write */
#define LIMIT_WINDOW_ROW_COUNT        200u /* sessions, or turns, of a page */
#define LIMIT_WINDOW_LISTED_COUNT     10000u /* judgments of a number, as data */
#define LIMIT_WINDOW_TEXT_BYTES       4096u
#define LIMIT_WINDOW_DUMP_BYTES       65536u        /* of a workflow or a configuration */
#define LIMIT_WINDOW_RECORD_COUNT     50u           /* raw records of a page */
#define LIMIT_WINDOW_FOUND_COUNT      200u          /* hits of one search */
#define LIMIT_NOW_RECORD_COUNT        400u          /* records of an open turn that are read */
#define LIMIT_TAIL_TEXT_BYTES         (12u * 1024u) /* end of what a running call has said */
#define LIMIT_TAIL_THINKING_BYTES     (4u * 1024u)
#define LIMIT_TAIL_ALL_BYTES          (8u * 1024u * 1024u) /* of all running calls */
/* sessions whose record offsets are kept */
#define LIMIT_SHELF_COUNT 16u
/* of them together, one always allowed */
#define LIMIT_SHELF_BYTES      (16u * 1024u * 1024u)
#define LIMIT_SHELF_TRIM_BYTES 65536u /* a track that grew by more gives back what reading took */
#define LIMIT_SHELF_IDLE_MS    60000u /* unused for this long, it goes */
#define LIMIT_TROUBLE_COUNT    256u   /* failed calls of the last hour */
#define LIMIT_TROUBLE_MS       3600000
#define LIMIT_CHANGE_COUNT     4096u /* session changes that a stream can resume from */

/* --- views and reports --- */
/* each text of a judgment given to a program */
#define LIMIT_LOOKUP_TEXT_BYTES (1024u * 1024u)
/* records of a page, one always allowed */
#define LIMIT_LOOKUP_PAGE_BYTES (4u * 1024u * 1024u)
/* requests that read logs at the same time */
#define LIMIT_API_READING_COUNT      2u
#define LIMIT_API_READING_WAIT_COUNT 64u     /* and requests waiting for their turn */
#define LIMIT_METRIC_SERIES_COUNT    200u    /* of one metric; the rest counts as "other" */
#define LIMIT_METRIC_CALL_COUNT      4096u   /* calls under way whose provider is known */
#define LIMIT_VIEW_TURN_COUNT        100000u /* turns of one session that are shown */
#define LIMIT_VIEW_SPAN_COUNT        64u     /* pieces of time of one turn */
#define LIMIT_VIEW_TEXT_BYTES        65536u  /* a task or a message in a view */
#define LIMIT_SKIM_BYTES             262144u /* of a log that a list looks at whole */
#define LIMIT_VIEW_LINE_BYTES        1024u   /* each text of a session in a list */
#define LIMIT_REPORT_ROW_COUNT       1000u   /* sessions of a folder */
#define LIMIT_REPORT_TOLD_BYTES      (4u * 1024u * 1024u) /* judgments shown in full */
#define LIMIT_REPORT_TOLD_MANY       (512u * 1024u) /* the same of several sessions together */
#define LIMIT_REPORT_MANY_BYTES      1985000u       /* several sessions, with their judgments */
#define LIMIT_REPORT_SHARE_LEAST     4096u          /* of each, however many there are */
#define LIMIT_REPORT_SAID_BYTES      (768u * 1024u) /* texts of rows, together, as written */
#define LIMIT_REPORT_SAID_LEAST      64u            /* of each, however many there are */
#define LIMIT_REPORT_NAME_BYTES      256u           /* a movement's name, as written */
#define LIMIT_REPORT_TEXT_BYTES      4096u          /* each text in them, with few turns */
#define LIMIT_REPORT_TEXT_LEAST      256u           /* the same with many turns */
/* in between: this divided by the number of turns */
#define LIMIT_REPORT_TEXT_SHARE (64u * 1024u)

/* --- audits: whatever is in the logs, their memory stays --- */
#define LIMIT_AUDIT_NAME_COUNT 30000u /* words: of movements, workflows, models ... */
#define LIMIT_AUDIT_NAME_BYTES 200u
#define LIMIT_AUDIT_LINE_BYTES (12u * 1024u * 1024u) /* a line of a log that is counted */
/* judgments of one log; with more it is read twice */
#define LIMIT_AUDIT_ROW_COUNT  8192u
#define LIMIT_AUDIT_OPEN_COUNT 8192u /* calls of turns that are not judged yet */
/* stages of one judgment, and calls of one stage */
#define LIMIT_AUDIT_STAGE_COUNT 64u
#define LIMIT_AUDIT_GROUP_BYTES (24u * 1024u * 1024u) /* memory of groups and their numbers */
#define LIMIT_AUDIT_FLAW_COUNT  4096u   /* failing answers of one log, and groups of them */
#define LIMIT_AUDIT_LIST_COUNT  200     /* groups of each list in an audit's totals */
#define LIMIT_AUDIT_PAIR_COUNT  1000u   /* pairs of raters, 9 KB each */
#define LIMIT_AUDIT_LABEL_COUNT 100000u /* labels of people that are compared */
#define LIMIT_AUDIT_CAUSE_COUNT 64      /* distinct causes of failures */
#define LIMIT_AUDIT_APART_COUNT 100     /* uncounted logs that are named */

/* --- the ledger --- */
#define LIMIT_LEDGER_SYNC_MS 50u                   /* from the start of one sync to the next */
#define LIMIT_HEADS_BYTES    (64u * 1024u * 1024u) /* a list of heads kept elsewhere */
#define LIMIT_LEDGER_LOCK_MS 5000u /* each other program holds its lock for one sync */

/* --- the index of a folder of logs --- */
#define LIMIT_INDEX_LEAST_COUNT 256u  /* a folder with fewer logs gets none */
#define LIMIT_INDEX_STEP_COUNT  5000u /* logs read before their rows are written for good */
#define LIMIT_INDEX_REST_MS     30000 /* between two updates while sessions end */

/* --- judge --- */
#define LIMIT_REASK_COUNT          5
#define LIMIT_PANEL_COUNT          7 /* judges that vote on one stage */
#define LIMIT_CALL_ATTEMPT_COUNT   4 /* where another provider can take over, or nothing waits */
#define LIMIT_SILENT_ATTEMPT_COUNT 2 /* silent or garbled: once more, then elsewhere */
#define LIMIT_STALL_RETRY_COUNT    2 /* of a call that says nothing; `stall_retries` */
#define LIMIT_STALL_RETRY_MAX      10
#define LIMIT_RETRY_BASE_MS        500
#define LIMIT_RETRY_MAX_MS         30000
#define LIMIT_RETRY_AFTER_MS                                                                       \
  120000 /* after a longer wait another provider is asked, if there is one */
/* an outage of a provider that has answered before, and of one that never has; pauses in it */
#define LIMIT_OUTAGE_WAIT_MS     (6 * 60l * 60 * 1000)
#define LIMIT_OUTAGE_NEW_WAIT_MS (60l * 1000)
#define LIMIT_OUTAGE_TOTAL_MS    (24 * 60l * 60 * 1000) /* all of a session together */
#define LIMIT_OUTAGE_PAUSE_MS    5000
#define LIMIT_OUTAGE_MAX_MS      300000
#define LIMIT_OUTAGE_LATE_MS     1000 /* an attempt after its time: nobody waited that long */
#define LIMIT_RESET_WAIT_MS                                                                        \
  (8 * 24ll * 60 * 60 * 1000)               /* weekly limits; a longer wait is an error */
#define LIMIT_SCHEMA_CACHE_COUNT 256u       /* narrowed judge schemas kept for all sessions */
#define LIMIT_STAGE_ERROR_COUNT  5          /* validator errors kept for one stage */
#define LIMIT_TAG_MENTION_COUNT  8u         /* uncounted tags of one text that are still reported */
#define LIMIT_TOKEN_BUDGET       1000000000 /* of one value, all its calls together */
#define LIMIT_BUDGET_SLACK_MS    10 /* a timer may fire this much early by the clock of durations */
#define LIMIT_RAISED_TOKENS      16384         /* length limit after a cut, where none was set */
#define LIMIT_OPTION_TOKENS      1000000000    /* highest max_tokens; more is a mistake */
#define LIMIT_USAGE_TOKENS       1000000000000 /* highest count a backend can claim for one call */
/* end of a bad output that is shown for correction */
#define LIMIT_REASK_OUTPUT_BYTES (256u * 1024u)
#define LIMIT_CHECK_WALL_MS      (10 * 60 * 1000) /* one run of an invariant */

/* --- calls and processes --- */
#define LIMIT_GROUP_LOOK_COUNT 8192u /* control groups searched for those of a session */
#define LIMIT_LEFTOVER_WAIT_MS 1000  /* wait for a crashed session's processes to end */
#define LIMIT_ENVIRON_BYTES    (4u * 1024u * 1024u)        /* environment read of each */
#define LIMIT_CALL_WALL_MS     (60 * 60 * 1000)            /* one execute call */
#define LIMIT_DEADLINE_MS      (90l * 24 * 60 * 60 * 1000) /* for a person to answer */
/* in case the clock jumps or the machine sleeps */
#define LIMIT_DEADLINE_LOOK_MS (60l * 1000)
#define LIMIT_DURATION_MS      (24l * 60 * 60 * 1000) /* highest timeout and stall */
#define LIMIT_CALL_STALL_MS    (15 * 60 * 1000)       /* without a byte from the provider */
#define LIMIT_JUDGE_WALL_MS    (10 * 60 * 1000)
#define LIMIT_JUDGE_STALL_MS   (5 * 60 * 1000) /* without a byte from a judge */
/* number tokens of calls below this are counted in an array */
#define LIMIT_TOKEN_NUMBER           1000000
#define LIMIT_OUTPUT_BYTES           (16u * 1024u * 1024u) /* stdout kept of one call */
#define LIMIT_STDERR_BYTES           (256u * 1024u)
#define LIMIT_INVARIANT_WALL_MS      (60 * 1000)    /* a command that checks a value */
#define LIMIT_INVARIANT_OUTPUT_BYTES (1024u * 1024) /* kept of each of its streams */
#define LIMIT_FROZEN_MS              1000 /* a limit noticed so late: we did not run meanwhile */
#define LIMIT_TERM_GRACE_MS          3000 /* between TERM and KILL (claude needs 1.6 s) */
/* part of that time before its whole group gets TERM (gemini) */
#define LIMIT_TERM_GROUP_MS 2000
#define LIMIT_EXIT_GRACE_MS 2000  /* pipes may stay open this long after exit */
#define LIMIT_SWEEP_WAIT_MS 10000 /* for the last descendant to die after its KILL */
#define LIMIT_SWEEP_POLL_MS 5     /* between two looks at the rest of a tree */
/* for a shim to end that stood by for a call which never came; it has nothing to clean up */
#define LIMIT_STANDBY_END_MS 1000
/* one read or write on a pipe: what a pipe holds */
#define LIMIT_PIPE_PIECE_BYTES (64u * 1024u)
/* waiting for a program that does not read */
#define LIMIT_STDIN_QUEUE_BYTES (32u * 1024u * 1024u)
#define LIMIT_TMPDIR_DEPTH                                                                         \
  128u /* levels removed at once below a call's TMPDIR; one descriptor each */
#define LIMIT_TMPDIR_NOTE_COUNT 8u     /* of what a call's program tried */
#define LIMIT_TMPDIR_ROUNDS     10000u /* deeper levels are moved up and removed in another round */

/* --- what a call changed in the working tree --- */
#define LIMIT_TREE_FILES        100000u       /* examined without git, or changed with it */
#define LIMIT_TREE_DEPTH        100u          /* of folders; a descriptor each */
#define LIMIT_TREE_WALK_MS      2000u         /* one walk over all files (network file systems) */
#define LIMIT_TREE_FILE_BYTES   (1024 * 1024) /* files up to this size have their lines counted */
#define LIMIT_TREE_KEPT_BYTES   (8u * 1024u * 1024u) /* files kept as they were before a call */
#define LIMIT_TREE_KEPT_COUNT   1000u                /* a larger tree without git is not kept */
#define LIMIT_TREE_NESTED       32u   /* repositories below one: more are not examined */
#define LIMIT_TREE_NESTED_DEPTH 3u    /* of those below each other */
#define LIMIT_TREE_TICK_MS      20    /* file times are as coarse as the kernel's clock */
#define LIMIT_TREE_FRESH_MS     100u  /* for a record between a look and what follows */
#define LIMIT_TREE_REST_MS      5000u /* between looks while others of the session are at work */
#define LIMIT_TREE_REST         20u   /* then also times as long as a look takes */
#define LIMIT_TREE_GIT_MS       10000 /* one run of git */
#define LIMIT_TREE_COUNT_MS     1000u /* counting lines; then files come without numbers */
#define LIMIT_TREE_LIST_BYTES   (16u * 1024u * 1024u) /* git's listing, and its blobs */
/* files listed in one record; the rest is counted */
#define LIMIT_TREE_TOLD         1000u
#define LIMIT_OWN_FOLDER_BYTES  (1u << 20)            /* what is noted of the files below .segue */
#define LIMIT_REPORT_BYTES      (32u * 1024u * 1024u) /* one report of tests */
#define LIMIT_REPORT_COUNT      1000u                 /* in one folder */
#define LIMIT_REPO_FILE_BYTES   (64u * 1024u)         /* .git, commondir, config, info/exclude */
#define LIMIT_REPO_CONFIG_BYTES (1024u * 1024u)       /* .git/config of many branches */
#define LIMIT_REPO_INDEX_BYTES  (256u * 1024u * 1024u)

#define LIMIT_CONCURRENCY       1000u
#define LIMIT_QUOTA_COOLDOWN_MS (15 * 60 * 1000) /* a provider that is out of money is left alone */
/* failures in a row over several sessions that shut the gate, whatever they are */
#define LIMIT_CIRCUIT_FAILURES 8u
#define LIMIT_ADMIT_COUNT      64u /* calls that the queue lets go in one turn of the loop */
#define LIMIT_FALLBACK_COUNT   8u  /* providers in one list */
/* times an agent that stops at a refusal is told to go on */
#define LIMIT_ACP_GO_ONS          20u
#define LIMIT_RUN_COUNT           32u   /* programs that a movement may run */
#define LIMIT_PROVIDER_COUNT      80u   /* backends of one run */
#define LIMIT_CALL_EVENT_COUNT    1000u /* call_event records of one call; later news are dropped */
#define LIMIT_TOOL_ARGUMENT_BYTES 2048u /* a tool's argument in a call_event, as JSON */
#define LIMIT_TOOL_OUTPUT_BYTES   1200u /* its output: the first and the last lines */
#define LIMIT_TOOL_NAME_BYTES     128u  /* its name, and the id of its use */
#define LIMIT_TOOL_SEEN_BYTES     (1u << 20) /* part of an output that is read */
/* one call_event as JSON; a larger one is dropped, with a note */
#define LIMIT_CALL_EVENT_BYTES 4096u

/* --- agents: clients run through a profile --- */
#define LIMIT_PROFILE_BYTES      (256u * 1024u) /* one profile */
#define LIMIT_PROFILE_COUNT      200u           /* files of the user's providers/ folder */
#define LIMIT_PROFILE_RULE_COUNT 200u           /* events of one profile */
#define LIMIT_POINTER_STEPS      32u            /* steps of one JSON Pointer; more is a mistake */
/* one JSON line; longer: class protocol */
#define LIMIT_AGENT_LINE_BYTES         (16u * 1024u * 1024u)
#define LIMIT_AGENT_SKIP_BYTES         (1024u * 1024u * 1024u) /* of a longer line, left out */
#define LIMIT_AGENT_ARGV_BYTES         (100u * 1024u) /* one argument (Linux allows 128 KiB) */
#define LIMIT_AGENT_FINAL_GRACE_MS     3000 /* a client may live on after its final event */
#define LIMIT_AGENT_BACKGROUND_MS      (30 * 60 * 1000) /* its background tasks, after that event */
#define LIMIT_AGENT_BACKGROUND_IDLE_MS (60 * 1000)      /* of them, while they do nothing */
#define LIMIT_TREE_PROCESSES           4096u            /* that are looked at for that */
#define LIMIT_AGENT_TASK_COUNT         32               /* of them that are followed, and told */
#define LIMIT_AGENT_TASK_BYTES         120              /* of the words of one, and of its id */
/* wait for its answer to an interrupt; then its stdin is closed */
#define LIMIT_AGENT_INTERRUPT_MS 3000
#define LIMIT_AGENT_TURNS        200     /* tool rounds of one call where a client counts them */
#define LIMIT_AGENT_PART_COUNT   100000u /* distinct messages and parts of one call */
/* a client's own retries where it has no setting; then it is stopped */
#define LIMIT_CLIENT_RETRY_COUNT   1
#define LIMIT_CLIENT_RETRY_WAIT_MS 30000 /* its own waits; longer ones are ours to decide */
/* until a client says where it listens (opencode: 12 s cold) */
#define LIMIT_SERVER_START_MS       60000
#define LIMIT_SERVER_REPLY_MS       30000 /* a client's replies other than the answer itself */
#define LIMIT_SERVER_TAIL_MS        2000  /* wait for events after an answer or an abort */
#define LIMIT_SERVER_LOST_MS        500   /* after a broken connection: did the client die? */
#define LIMIT_SERVER_LANE_COUNT     4096u /* requests to clients at once, of all calls */
#define LIMIT_SERVER_QUESTION_COUNT 64u   /* questions of one client not yet answered */
#define LIMIT_SERVER_SECRET_BYTES   24u   /* random bytes in a client's password */
#define LIMIT_EVIDENCE_BYTES        (64u * 1024u) /* end of stderr that is searched for a reason */
#define LIMIT_VERSION_BYTES         4096u         /* of the answer to --version */
#define LIMIT_VERSION_ASK_COUNT     4u            /* programs that a daemon asks for it at a time */
#define LIMIT_VERSION_COUNT         64u           /* programs whose version it keeps */
#define LIMIT_VERSION_FRESH_MS      600000        /* then it asks again, once somebody looks */
#define LIMIT_PROBE_WALL_MS         30000 /* `--version` of a client (opencode needs 10 s cold) */
#define LIMIT_TRANSCRIPT_BYTES      (256u * 1024u * 1024u) /* a recording, read whole */

#define LIMIT_SECRET_BYTES        8u    /* shorter values of declared variables are not redacted */
#define LIMIT_SECRET_COUNT        32u   /* names in `secrets` */
#define LIMIT_SANDBOX_PATHS       200u  /* in a list of `sandbox` */
#define LIMIT_CALL_CPUS           1024u /* in `limits` */
#define LIMIT_CALL_PIDS           4194304u /* in `limits`: the kernel's maximum (PID_MAX_LIMIT) */
#define LIMIT_CONTAINER_REMOVE_MS 20000    /* removal of a container whose engine was killed */
#define LIMIT_SANDBOX_HOSTS       100u     /* in `hosts` of `sandbox` */
#define LIMIT_SANDBOX_KEPT        8u       /* kinds of calls whose rules are kept */
#define LIMIT_LOOK_UP_MS          1000     /* what is installed is looked up again after this */
#define LIMIT_START_MOMENT_MS     2000     /* an empty log so young may be about to begin */
#define LIMIT_SANDBOX_KEPT_MS     10000    /* after their last use, since they pin what they name */
#define LIMIT_SECRET_WORD_BYTES   4096u /* words of a command line that are searched for secrets */

/* --- HTTP --- */
#define LIMIT_PRICE_LIST_BYTES (32u * 1024u * 1024u) /* a public list of prices */
#define LIMIT_HTTP_CONNECT_MS  10000                 /* name, connection and TLS of one request */
/* without a byte: models may think long before the first */
#define LIMIT_HTTP_STALL_MS     (5 * 60 * 1000)
#define LIMIT_HTTP_TAIL_MS      2000 /* wait for the end of a reply whose answer is complete */
#define LIMIT_PROBE_MODELS      200u /* names of models that one probe gives */
#define LIMIT_HTTP_PROBE_MS     2000 /* one probe of `segue providers` */
#define LIMIT_HTTP_HEADER_BYTES (64u * 1024u) /* all headers of one reply */
#define LIMIT_HTTP_BODY_BYTES                                                                      \
  (64u * 1024u * 1024u) /* one reply, decoded: 16 MiB of text in events */
#define LIMIT_HTTP_EVENT_BYTES  (16u * 1024u * 1024u) /* one server-sent event or NDJSON line */
#define LIMIT_HTTP_ERROR_BYTES  (64u * 1024u)         /* read of an error's body */
#define LIMIT_HTTP_IDLE_HANDLES 256u /* libcurl handles kept for the next request */
#define LIMIT_HTTP_CONNECTIONS  1024 /* open connections kept, of all providers */
#define LIMIT_HTTP_LANE_COUNT   64u  /* of one provider's requests at once, unless configured */
#define LIMIT_HTTP_URL_BYTES    2048u
#define LIMIT_HTTP_KEY_BYTES    4096u       /* one API key */
#define LIMIT_KEY_COMMAND_MS    (30 * 1000) /* the program that prints it */
#define LIMIT_KEY_COMMAND_WORDS 32u
#define LIMIT_AGENT_IDLE_MS     (30 * 60 * 1000) /* output without text, reasoning or tools */
#define LIMIT_PROXY_CONNECTIONS 64u   /* of one call's programs at once, with network: api */
#define LIMIT_PROXY_HEAD_BYTES  8192u /* the request line and headers that ask for a connection */
#define LIMIT_PROXY_HEAD_MS     10000 /* until they are there */
#define LIMIT_PROXY_CONNECT_MS  15000 /* a name and one connection */
#define LIMIT_PROXY_LINGER_MS   2000  /* what one that was refused still sends is read so long */
#define LIMIT_PROXY_QUEUE_BYTES (256u * 1024u) /* buffered for a slow reader before reading stops */
#define LIMIT_PROXY_REFUSALS    32u            /* refusals reported for one call, each host once */
#define LIMIT_HTTP_OWN_HEADERS  16u /* headers, and query members, that a user adds to requests */
/* a provider that was replaced is skipped for this long */
#define LIMIT_BEHIND_MS         (10 * 60 * 1000)
#define LIMIT_OLLAMA_WINDOW     4096u            /* tokens: the server's default */
#define LIMIT_CACHED_HEAD_BYTES 4096u            /* a shorter head is not worth a mark */
#define LIMIT_HTTP_IDLE_MS      (10 * 60 * 1000) /* signs of life without any content */
#define LIMIT_BUDGET_TOKENS     1000000000000.0  /* highest budget; more is no limit */
#define LIMIT_ADD_BUDGET_COUNT  64u              /* amounts that one resume adds */
#define LIMIT_GATE_COUNT        16u              /* gates of one movement */
#define LIMIT_ERROR_WAY_COUNT   16u              /* entries of one on_error */
#define LIMIT_ERRORS_IN_ROW     10u              /* turns that on_error leads on from, in a row */
#define LIMIT_PROTECT_COUNT     64u              /* patterns of protected paths */
#define LIMIT_GUARD_TIMES       1000u            /* highest count of a guard */
#define LIMIT_BUDGET_CALLS      1000000000u      /* the same */
#define LIMIT_COST_USD          1e6              /* one call in dollars; more is not a price */
#define LIMIT_REFUSED_COUNT     8u               /* parameters that one model refused */
/* rungs and versions remembered, of all providers and models */
#define LIMIT_HTTP_MEMO_COUNT   256u
#define LIMIT_SCHEMA_SENT_BYTES (64u * 1024u) /* larger in its dialect, it goes with the prompt */
#define LIMIT_API_SCHEMA_COUNT  64u /* schemas kept in the form of a provider, of all sessions */

/* --- store --- */
#define LIMIT_DISK_RETRY_MS     1000  /* between two tries on a full disk */
#define LIMIT_DISK_FULL_WAIT_MS 30000 /* segue run gives up (resumably) after this */
/* logged between two releases of free memory */
#define LIMIT_TRIM_BYTES         (4u * 1024u * 1024u)
#define LIMIT_POOL_THREADS_MIN   4u /* libuv pool: files synced at once */
#define LIMIT_POOL_THREADS_MAX   12u
#define LIMIT_PORTION_US         200u  /* short works that usually take so long go to one thread */
#define LIMIT_POOL_THREADS_TRIED 1024u /* the most that UV_THREADPOOL_SIZE can ask for */

/* untouched for so long, a file that was to become a blob belongs to no version that still runs */
#define LIMIT_BLOB_PART_MS 60000u

#define LIMIT_LOOP_HOLD_MS    10   /* scripted answers in a row before the loop serves the rest */
#define LIMIT_SYNC_NOW_MS     10   /* a sync on the loop's thread that is slower ... */
#define LIMIT_SYNC_POOL_COUNT 100u /* ... sends this many appends to the pool */

/* --- shared store --- */
#define LIMIT_STORE_ASK_MS         10000u  /* one request to its server */
#define LIMIT_STORE_REASON_MS      2000u   /* asking once more why it refuses a connection */
#define LIMIT_STORE_SCRIPT_MS      600000u /* making or migrating the tables */
#define LIMIT_STORE_BYTES_MS       8192u   /* bytes a request must move in each further ms */
#define LIMIT_STORE_TRY_MS         10000u  /* how long a failed request is tried again */
#define LIMIT_STORE_TELL_MS        1000u   /* ... and after which a person is told */
#define LIMIT_STORE_BACKOFF_MS     50u     /* before the first of these tries; then doubled ... */
#define LIMIT_STORE_BACKOFF_MAX_MS 5000u   /* ... up to this */
#define LIMIT_STORE_ANSWER_MS      30000u  /* for what is asked of another worker */
#define LIMIT_STORE_HEAR_MS        1000u   /* until a worker's notification of itself comes */
#define LIMIT_STORE_SETTLE_MS      2000u   /* for the release of a session that has stopped ... */
#define LIMIT_STORE_SETTLE_LOOK_MS 20u     /* ... between two looks at it */
#define LIMIT_STORE_LEASE_MS       30000u  /* a worker's lease, unless --lease says it */
#define LIMIT_STORE_LEASE_MIN_MS   1000u
#define LIMIT_STORE_LEASE_MAX_MS   3600000u
#define LIMIT_STORE_POLL_MS        2000u          /* between two looks at the queue */
#define LIMIT_STORE_PIPELINE_BYTES (256u * 1024u) /* of appends that share one sync */
#define LIMIT_STORE_PIPELINE_COUNT 256u
#define LIMIT_STORE_COMMIT_COUNT   2u            /* pipelines at once */
#define LIMIT_STORE_CLAIM_BYTES    (64u * 1024u) /* of a log that comes with its claim */
/* Connections that are kept, no fewer than there are pool threads: a new one costs the server more
 * than what is asked (with 4, eight clients that submitted got 0.4 times the turns). */
#define LIMIT_STORE_IDLE_COUNT 16u
/* an idle connection is closed after this long; one stays */
#define LIMIT_STORE_IDLE_MS      10000u
#define LIMIT_STORE_WINDOW_BYTES (256 * 1024)    /* of a log, read in one go */
#define LIMIT_STORE_PART_BYTES   (1024u * 1024u) /* of a blob, in one row */
/* a blob that was put or seen this recently is taken to be there */
#define LIMIT_STORE_BLOB_MS     1000u
#define LIMIT_STORE_BLOB_COUNT  16u
#define LIMIT_STORE_LABEL_BYTES 128u
#define LIMIT_STORE_LABEL_COUNT 64u
/* first pause of a session that a worker cannot continue */
#define LIMIT_STORE_PAUSE_MS     5000
#define LIMIT_STORE_PAUSE_MAX_MS 300000 /* longest such pause */
#define LIMIT_STORE_PAUSE_COUNT  64u    /* sessions that one worker knows of */
#define LIMIT_SEAT_RETRY_MS      2000   /* before a shared place is asked for again */
#define LIMIT_POOL_BYTES         128u   /* name of a pool of shared places */
/* deaths of workers at one session without a turn between */
#define LIMIT_STORE_DEATHS 3

/* --- daemon --- */
#define LIMIT_SESSIONS_DEFAULT 16    /* sessions that run at once, unless --max-sessions says so */
#define LIMIT_SESSIONS_MAX     10000 /* what --max-sessions may say */
/* A daemon of a shared store keeps the sessions that it will begin this soon; the others may go to
 * another worker at once. */
#define LIMIT_QUEUE_HELD_MS    500u
#define LIMIT_QUEUE_HELD_COUNT 512u   /* a waiting session takes about 12 KiB */
#define LIMIT_QUEUE_PACE_MS    50u    /* the span in which places that become free are counted */
#define LIMIT_QUEUE_COUNT      10000u /* sessions that wait; more are refused */
#define LIMIT_SESSION_FD_COUNT                                                                     \
  8 /* descriptors of a running session: its log, a command, its pipes */
#define LIMIT_HEAP_PIECE_BYTES                                                                     \
  (256 * 1024) /* larger blocks are mapped: they grow without a copy and are freed at once */
#define LIMIT_OWN_FD_COUNT  24 /* descriptors of the daemon itself */
#define LIMIT_LOOP_FD_COUNT 8u /* of one loop, before it does anything */
#define LIMIT_START_COUNT   8u /* sessions read back and started in one iteration of the loop */
/* sessions after which one is to begin, and between looks at those of them that others run */
#define LIMIT_AFTER_COUNT   256u
#define LIMIT_AFTER_LOOK_MS 2000u
/* ended sessions still known without their log, some 4 KiB each */
#define LIMIT_OVER_COUNT          32u
#define LIMIT_LOCK_WAIT_MS        2000      /* wait for the locks of a daemon that was killed */
#define LIMIT_GIT_MS              1800000u  /* one run of git for a worktree: large repositories */
#define LIMIT_FORGE_TEXT_BYTES    20000u    /* of one text of an issue or a pull request */
#define LIMIT_FORGE_COMMENT_COUNT 100u      /* of its comments */
#define LIMIT_FORGE_TITLE_BYTES   200u      /* of a pull request's title */
#define LIMIT_FORGE_BODY_BYTES    60000u    /* of a pull request's text; forges take some 65,000 */
#define LIMIT_OPEN_TRIES          100u      /* of opening a path while others rename things */
#define LIMIT_GIT_TRACE_BYTES     16777216u /* what the git programs of a call told of themselves */
#define LIMIT_GIT_TRACE_PAIRS     1000u /* different commands in different working trees of it */
#define LIMIT_SUBMODULE_COUNT     1000u /* checked out in one worktree, nested ones too */
#define LIMIT_SUBMODULE_TRIES     64u   /* stores that are tried for a submodule's commit */
#define LIMIT_WORKTREE_FILE_COUNT 32u   /* files copied or linked into a worktree */
/* between two tries for a folder that another session edits */
#define LIMIT_FOLDER_POLL_MS 300
#define LIMIT_FOLDER_SOON_MS 20 /* somebody asks for a folder at the same moment */
/* Whoever waits for what a stopped session keeps has git look so often whether it was committed;
 * all together at most five times as often. */
#define LIMIT_FOLDER_LOOK_MS 5000
/* the setup of a worktree: commands, keys and kept names; one command; the end of its output in a
 * record or message; kept results, each for 30 days after a use; the size of one */
#define LIMIT_SETUP_COUNT      16
#define LIMIT_SETUP_MS         1800000
#define LIMIT_SETUP_TEXT_BYTES 1500u
#define LIMIT_SETUP_KEPT_COUNT 8
#define LIMIT_SETUP_KEPT_KIB   4194304
/* between two tries for a log that another program owns */
#define LIMIT_LOCK_RETRY_MS 1000
#define LIMIT_MEND_MS       1000  /* before a log that failed is opened again; doubles */
#define LIMIT_MEND_MAX_MS   60000 /* ... up to this */
/* ... this many times without a new turn: about five minutes */
#define LIMIT_MEND_COUNT           10u
#define LIMIT_DRAIN_MS             30000 /* for running calls when the daemon is told to stop */
#define LIMIT_API_BACKLOG_COUNT    128   /* connections that wait to be accepted */
#define LIMIT_API_CONNECTION_COUNT 4096u
#define LIMIT_API_PEER_MIN_COUNT                                                                   \
  64u /* connections of one process that may wait; else a quarter of all */
#define LIMIT_API_CONNECTION_BYTES 4096u /* memory of one: its request line and headers must fit */
/* of one request: a task and its escapes */
#define LIMIT_API_BODY_BYTES       (16u * 1024u * 1024u)
#define LIMIT_API_SMALL_BODY_BYTES (64u * 1024u)   /* bodies that are read together, all of them */
#define LIMIT_API_BIG_BODY_BYTES   (1024u * 1024u) /* a body whose memory is released at once */
#define LIMIT_API_BODIES_BYTES                                                                     \
  (64u * 1024u * 1024u) /* all requests being received, and as much again for those being read */
#define LIMIT_API_IDLE_S          30    /* without a byte sent or received; then it is closed */
#define LIMIT_API_REQUEST_MS      60000 /* from the last answer to the end of the next request */
#define LIMIT_API_ACCEPT_RETRY_MS 100   /* no descriptor was left to accept with */
/* on event streams, so that a reader that left is noticed */
#define LIMIT_API_HEARTBEAT_MS 15000
#define LIMIT_API_DELTA_BYTES                                                                      \
  (16u * 1024u) /* pieces of text waiting for one reader; more are dropped */
#define LIMIT_API_FETCH_BYTES                                                                      \
  (256u * 1024u) /* of a shared store's log, read at once for watchers */
#define LIMIT_API_FOREIGN_MS                                                                       \
  500 /* between two looks at the log of a session that another program runs */
#define LIMIT_API_PAGE_COUNT  1000u  /* sessions of one answer */
#define LIMIT_API_READ_COUNT  1000u  /* logs looked at for one answer */
#define LIMIT_API_ERROR_COUNT 50u    /* errors of a workflow in one answer */
#define LIMIT_API_DEPTH       64u    /* nesting of a request's JSON */
#define LIMIT_API_VALUE_COUNT 20000u /* values of a request's JSON: a provider a movement, facets */
#define LIMIT_CLIENT_WAIT_S   60     /* how long the command line waits for an answer */

/* --- terminal --- */
#define LIMIT_LONG_WAIT_MS     10000 /* a retry that waits longer is mentioned in a pipe */
#define LIMIT_TERM_COLUMNS     500
#define LIMIT_TERM_MIN_COLUMNS 40
#define LIMIT_SPINNER_MS       100
#define LIMIT_LIVE_SILENT_MS   2000  /* silence before the live line mentions it */
#define LIMIT_LIVE_LINES       8u    /* open turns that are drawn */
#define LIMIT_LIVE_TEXT_BYTES  4096u /* words without a line end; a piece of a command's output */
/* between two looks for a signal while standard output is full */
#define LIMIT_OUTPUT_LOOK_MS 100
#define LIMIT_OUTPUT_WAIT_MS 2000 /* wait for a reader that does not read, after a signal to stop */

#endif
