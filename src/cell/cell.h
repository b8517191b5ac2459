#pragma once
/*
 * cell: a sandbox for one program tree, started and ended by the monitor (closedbook-cell).
 *
 * A cell is one PID namespace with an init of ours; everything in it dies with that init. The
 * client describes a cell with descriptors and byte strings; the monitor builds it. Two servers
 * speak the protocol (protocol.h): the monitor ("native") and the tempdir server ("tempdir", no
 * protection).
 *
 * A struct monitor is one connection; the parent process holds the control connection and makes one
 * further connection per trial before it forks it. When a connection closes, its cells are killed;
 * when the control connection closes, all are and the monitor exits.
 * Calls block. Not thread-safe: one connection, one thread. Depends on: base.
 */

#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "cell/tiers.h"

#define CELL_MOUNTS_MAX 24  /* trees of one cell */
#define CELL_TEXTS_MAX 16   /* synthesised files of one cell */
#define CELL_LAYERS_MAX 8   /* lower layers of one workspace */
#define CELL_FDS_MAX 8      /* descriptors of one command */
#define CELL_MASKS_MAX 4    /* names hidden from one tree */
#define CELL_PATH_BYTES 128 /* a mount point with its NUL */
#define CELL_REASON_BYTES 160
#define CELL_ARGS_BYTES_MAX ((size_t)1 << 20) /* argv and env together */

enum cell_driver {
    CELL_NATIVE,
    CELL_TEMPDIR, /* no protection */
    CELL_WALLED,  /* tier C: a temporary directory behind landlock and seccomp, for machines without
                     namespaces; not as root */
};

struct monitor;

struct monitor_options {
    enum cell_driver driver;
    const char *cell_program;      /* path of closedbook-cell (native) */
    const char *worker_program;    /* path of closedbook-worker */
    const char *unpack_program;    /* path of another that may be one; NULL: none */
    const char *candidate_program; /* path of as-candidate, NULL: no candidates */
    /*
     * Who the server is when the caller is root, 0: root. Native: for a root that has no power to
     * mount. The others: their commands are this user's.
     */
    uid_t uid;
    gid_t gid;
    /* Not NULL: called while the server starts, for what takes time and needs no answer first. */
    void (*meanwhile)(void *context);
    void *meanwhile_context;
    const char *lacking; /* walled: why there is no better tier */
};

#define MONITOR_LACKING_BYTES 192
/* What cgroups limit here; bits of monitor_facts.limits are 1 << one of these. */
enum cell_cgroup { CELL_CGROUP_MEMORY, CELL_CGROUP_PIDS, CELL_CGROUP_CPU, CELL_CGROUP_KINDS };

/* What the monitor found on this machine when it started. */
struct monitor_facts {
    enum cell_driver driver;
    enum cell_tier tier;
    int landlock_abi; /* 0: none */
    bool overlay, idmap, tmpfs_xattr, subuid;
    uint64_t protections; /* bits of enum cell_protection that this tier applies */
    /* What keeps the machine from a better tier, in words; "" for the best. */
    char lacking[MONITOR_LACKING_BYTES];
    uint32_t limits; /* what can be limited by cgroups: 1 << enum cell_cgroup */
    char limits_reason[CELL_REASON_BYTES]; /* why not more; "" when all can */
};

/*
 * Starts the server and waits until it is ready. Must be called before privileges are dropped.
 * ERROR_SYSTEM names what the machine lacks.
 */
must_check int monitor_start(const struct monitor_options *options, struct monitor **ret,
                             struct error **err) nonnull(1, 2);
const struct monitor_facts *monitor_facts(const struct monitor *monitor) nonnull(1);
/* A further connection of the same server. Freed on its own. Its cells have ids of their own lease.
 */
must_check int monitor_connect(struct monitor *control, struct monitor **ret, struct error **err)
    nonnull(1, 2);
/* Closes the connection: its cells die. The rest is left to monitor_free(). NULL is fine. */
void monitor_hang_up(struct monitor *monitor);
/* The same, and on the control connection waits for the server's end. */
void monitor_free(struct monitor *monitor);
void monitor_freep(struct monitor **monitor);
/* After fork: forget the inherited control connection without ending the server. */
void monitor_forget(struct monitor *monitor);

enum cell_role {
    CELL_AGENT,     /* the agent under test; also harness steps that act as it */
    CELL_GRADER,    /* runs graders over what the agent left */
    CELL_WORKER,    /* our own worker over hostile files: no network, no /usr, one source, one
                       destination */
    CELL_CANDIDATE, /* what the agent left, run by a grader: made by as-candidate alone */
};

/*
 * A tree (directory or regular file) mounted read-only. The descriptor is borrowed (O_PATH is
 * enough). Directories are seen through an overlay, regular files up to 16 MiB are copied: either
 * way no inode, and so no lock, is shared with another cell, and no path of the host shows.
 */
struct cell_mount {
    int fd;
    /* absolute path in the cell, also one inside a tree that stands before this one in the list;
       missing parents are made, mode 0755 */
    const char *target;
    bool writable;      /* CELL_WORKER only */
    bool hidden_parent; /* the parent of target lists nothing: mode 0711, tier B 0111 */
    bool own;           /* a directory of the system: where identity_root, the cell may change it */
    /* first-level names of the tree that are absent in the cell */
    const char *masks[CELL_MASKS_MAX];
};

/*
 * A file of root's with these bytes, mode 0644 or 0755. Anywhere outside workspace, HOME, /tmp,
 * /dev; of /proc meminfo and cpuinfo only. To /etc/passwd and /etc/group the cell itself adds the
 * line of its user, "agent", whose id is known only when it is leased.
 */
struct cell_text {
    const char *target;
    const void *bytes;
    size_t size_bytes;
    bool executable;
};

enum cell_workspace_kind {
    CELL_WORKSPACE_NONE,    /* CELL_WORKER */
    CELL_WORKSPACE_COPY,    /* the layers copied in order onto a sized tmpfs (none: empty) */
    CELL_WORKSPACE_OVERLAY, /* the layers as overlay lowers, last on top, upper on a sized tmpfs */
    CELL_WORKSPACE_KEEP,    /* the workspace of an ended cell of the same connection */
    CELL_WORKSPACE_SHARED,  /* CELL_CANDIDATE: that of its grading cell, mounted in both;
                               CELL_GRADER: that of a live cell of the same connection, read-only */
};

struct cell_workspace {
    enum cell_workspace_kind kind;
    int layer_fds[CELL_LAYERS_MAX]; /* borrowed directories, first at the bottom */
    size_t layer_count;
    uint32_t keep_cell_id;
};

/* 0 means the default of task-format.md, "sandbox.limits". */
struct cell_limits {
    uint64_t disk_bytes; /* workspace; HOME, /tmp and /dev/shm get as much each */
    uint64_t inodes;
    uint64_t
        pids; /* RLIMIT_NPROC of the leased id; the cgroup's, where there is one, a little more */
    uint64_t open_files;
    uint64_t file_bytes; /* RLIMIT_FSIZE, 0 = none */
    /*
     * What the programs may use, 0 = none. The cell's places are memory, too, and come on top:
     * else a full disk would be an end by the kernel instead of ENOSPC. Programs that take the
     * places' part for themselves are ended by the kernel at the next page after that was seen.
     */
    uint64_t memory_bytes;
    uint64_t cpu_millis; /* thousandths of a processor; 0 = all. At least CELL_CPU_MILLIS_MIN */
};
#define CELL_PLACES 4 /* workspace, HOME, /tmp, /dev/shm: disk_bytes each */
#define CELL_CPU_MILLIS_MIN 10

struct cell_command {
    const char *const *argv; /* argv[0] is a path in the cell or a name looked up in env's PATH */
    const char *const *envp; /* the whole environment */
    const char *cwd;         /* NULL: the workspace */
    int fds[CELL_FDS_MAX];   /* fds[i] becomes descriptor i; -1 is /dev/null. Borrowed. */
    size_t fd_count;         /* at least 3 are set up */
    bool controlling_tty;    /* fds[0] is a terminal of ours and becomes the controlling one */
};

struct cell_spec {
    enum cell_role role;
    struct cell_mount mounts[CELL_MOUNTS_MAX];
    size_t mount_count;
    struct cell_text texts[CELL_TEXTS_MAX];
    size_t text_count;
    int etc_fd; /* directory that is the lower part of /etc, -1: none */
    /*
     * A directory that is the whole root, read-only, in place of one made of the mounts; mounts,
     * texts and the cell's own places lie over it. Not for CELL_WORKER, nor on the tempdir server,
     * which has no root of its own.
     */
    bool has_root;
    int root_fd; /* counts when has_root */
    struct cell_workspace workspace;
    struct cell_limits limits;
    struct cell_command command; /* the first program; argv NULL: init alone */
    /*
     * CELL_WORKER: another program in place of the worker, seen with the host's /usr for its loader
     * and libraries; only the control connection may name one. NULL: the worker.
     */
    const int *program_fd;
    /* CELL_WORKER: the tree of an ended cell's workspace at /src (upper layer when overlay) */
    uint32_t collect_cell_id; /* 0: none */
    bool ptrace_denied;
    /*
     * CELL_AGENT, tier A: its programs are root in a user namespace over ids that own nothing on
     * the host. The root, /etc and the mounts that say `own` can be written to; what is written
     * there goes with the cell.
     */
    bool identity_root;
};

struct cell_exit {
    int exit_code;   /* -1 when a signal ended it */
    int term_signal; /* 0 when it exited */
    uint64_t user_us, system_us, max_rss_kib;
    uint64_t end_ns; /* CLOCK_MONOTONIC, as the monitor saw it */
};

struct cell_receipt {
    uint64_t processes; /* that still existed when the end began */
    uint64_t kill_ns;   /* from the end's beginning until no process of the cell existed */
    bool empty;         /* waitid on the init returned: always true on success */
    /*
     * Of all programs together. Without cgroup v2 processes whose parent does not want to hear of
     * their end (SIGCHLD ignored) are not in it.
     */
    uint64_t cpu_us;
    bool has_memory;            /* the next two are known */
    uint64_t memory_peak_bytes; /* with what the cell's places held */
    uint64_t oom_kills;         /* processes that the kernel ended for want of memory */
    /*
     * The most that was seen of the programs' own memory and of what lay in places and shared
     * memory, looked at every 100 ms and at the end; the kernel keeps no peak of them. 0 looks: not
     * known.
     */
    uint64_t memory_looks, private_peak_bytes, shared_peak_bytes;
};

struct cell; /* one live or ended cell */

/*
 * In a CELL_WORKER cell each mount is also open as descriptor CELL_WORKER_FD + index (in the order
 * of mounts), the collected workspace as the one after the last mount. The worker uses descriptors
 * only.
 * It runs under the id of who asked, with CAP_DAC_READ_SEARCH, and with CAP_SYS_ADMIN as well when
 * it collects an overlay's upper layer in tier A, where only that shows trusted.overlay.*; its
 * filter has no call by which it could use that for anything else.
 */
#define CELL_WORKER_FD 10

/*
 * Returns once every mandatory protection of the tier is in force and the first program was
 * executed. ERROR_SYSTEM otherwise, with the step that failed; nothing of the cell is left. A
 * program that cannot be executed is ERROR_AGENT with error_errno_of() ENOENT, EACCES or ENOEXEC.
 */
must_check int cell_start(struct monitor *monitor, const struct cell_spec *spec, struct cell **ret,
                          struct error **err) nonnull(1, 2, 3);
/*
 * Runs one more program in a live CELL_GRADER or CELL_AGENT cell. *ret_process names it in
 * cell_wait(). It has a landlock domain of its own: files are shared with the cell's other
 * programs, but it neither signals nor traces them, nor sees them in /proc.
 */
must_check int cell_exec(struct cell *cell, const struct cell_command *command,
                         uint32_t *ret_process, struct error **err) nonnull(1, 2, 3);

/* Output that is pumped while waiting. */
struct cell_capture {
    int fd;              /* read end, made non-blocking by cell_wait(); -1: closed */
    struct buf *buf;     /* gets the bytes, up to its cap; NULL: only counted and passed on */
    uint64_t bytes_seen; /* all that came, kept or not */
    /* called with each piece, may be NULL; its context is the caller's */
    void (*on_bytes)(void *context, const char *bytes, size_t size);
    void *context;
    bool enough; /* set by on_bytes: it is not waited any longer, as if stopped */
};

/* How long to wait, and what to do meanwhile. */
struct cell_patience {
    struct cell_capture *captures;
    size_t capture_count;
    uint64_t deadline_ns;     /* clock_ns() at which to give up; 0: never */
    const volatile int *stop; /* given up when non-zero; set by a signal handler; may be NULL */
};

enum cell_wait_result { CELL_EXITED, CELL_DEADLINE, CELL_STOPPED };

/*
 * Waits for the end of a program (0: the first), pumping captures. After the program's end what
 * the pipes hold is drained without blocking; pipes that orphans keep open are not waited for.
 */
must_check int cell_wait(struct cell *cell, uint32_t process, const struct cell_patience *patience,
                         enum cell_wait_result *ret, struct cell_exit *ret_exit, struct error **err)
    nonnull(1, 3, 4, 5);
/* Kills everything in the cell; returns when no process of it exists. The workspace is kept. */
must_check int cell_end(struct cell *cell, struct cell_receipt *ret, struct error **err)
    nonnull(1, 2);

/* One program of closedbook-worker over hostile files, from start to end. */
struct worker_job {
    const char *const *args; /* operation and its arguments, NULL-terminated */
    struct cell_mount
        mounts[4]; /* targets are set by worker_run(); descriptors from CELL_WORKER_FD */
    size_t mount_count;
    uint32_t collect_cell_id; /* 0: none */
    int fds[CELL_FDS_MAX]; /* further descriptors: fds[3]... as the operation wants; [0..2] ignored
                            */
    size_t fd_count;
    size_t output_max_bytes;
    const int *program_fd; /* as in cell_spec */
    uint64_t timeout_ms;   /* 0: none. Past it the worker is ended: ERROR_LIMIT */
};

/*
 * Runs the job in a CELL_WORKER cell; its standard output goes to *ret_output. Exit status 0 is
 * success; otherwise its standard error ("code: message", code as error_code_name()) becomes the
 * error.
 */
must_check int worker_run(struct monitor *monitor, const struct worker_job *job,
                          struct buf *ret_output, struct error **err) nonnull(1, 2, 3);
/* The worker program as a mount for a grading cell, at CELL_WORKER_PATH. Borrowed from the monitor.
 */
#define CELL_WORKER_PATH "/run/closedbook/worker"
struct cell_mount monitor_worker_mount(const struct monitor *monitor) nonnull(1);

/*
 * Candidates: a program of a live CELL_GRADER cell calls as-candidate, which asks the monitor for a
 * cell of its own for one command. That cell is made by the recipe: its mounts, texts, /etc and
 * limits, with the workspace of the grading cell (and nothing else of that) shared. recipe's role,
 * workspace and command are set here. Once a grading cell; before it, as-candidate waits.
 */
must_check int cell_allow_candidates(struct cell *grading, const struct cell_spec *recipe,
                                     struct error **err) nonnull(1, 2);
/*
 * How many of them could not be made, for which neither the command nor its caller is to blame, as
 * known when the last program of the cell ended: no verdict may rest on such a command.
 */
uint32_t cell_candidate_failures(const struct cell *cell) nonnull(1);
/* as-candidate as a mount for a grading cell. Borrowed; its fd is -1 when the monitor has none. */
#define CELL_CANDIDATE_DIR "/run/closedbook/bin"
#define CELL_CANDIDATE_PATH CELL_CANDIDATE_DIR "/as-candidate"
#define CELL_CANDIDATES_MAX 16 /* of one grading cell at a time; further ones wait */
struct cell_mount monitor_candidate_mount(const struct monitor *monitor) nonnull(1);

/* Facts for trial.json. */
uint32_t cell_id(const struct cell *cell) nonnull(1);
uid_t cell_uid(const struct cell *cell) nonnull(1);
uint64_t cell_protections(const struct cell *cell) nonnull(1);
bool cell_workspace_layered(const struct cell *cell) nonnull(1);
/*
 * True when the cell has ended and the monitor found no entry in its workspace; of a layered one:
 * in what lies over the layers, so that it is as it was staged. False when that is not known.
 */
bool cell_workspace_empty(const struct cell *cell) nonnull(1);

/* Ends the cell if needed and drops its workspace. */
void cell_free(struct cell *cell);
void cell_freep(struct cell **cell);
