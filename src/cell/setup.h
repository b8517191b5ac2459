#pragma once
/*
 * setup: what happens in the child that becomes a cell's init, from clone to the first program.
 *
 * Everything here runs in that child (or, for a further program, in the child that joins a cell), a
 * fork of the single-threaded monitor. Functions return 0 or -errno and leave in `step` and
 * `detail` what they were at; each sets its protection's bit only after it succeeded.
 */

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cell/cgroup.h"
#include "cell/protocol.h"
#include "cell/sys.h"

/* The user's id inside a tier B cell. */
#define CELL_INNER_UID 1000u
/* The worker is executed by this descriptor, which closes with that. */
#define WORKER_EXEC_FD 1000
#define WORKER_OPEN_FILES 512
#define NAMESPACE_FDS 7

enum device { DEVICE_NULL, DEVICE_ZERO, DEVICE_FULL, DEVICE_RANDOM, DEVICE_URANDOM, DEVICE_TTY };
#define DEVICE_COUNT 6

#define ROOT_LINKS 8
#define ROOT_LINK_BYTES 32

/* What the monitor found out once, at its start. */
struct machine {
    enum cell_tier tier;
    int landlock_abi;
    bool overlay, idmap, tmpfs_xattr, subuid;
    enum cell_step lacking; /* what keeps it from a better tier; STEP_NONE: root did not start it */
    int lacking_error;
    int null_fd;                             /* /dev/null, read and write */
    char links[ROOT_LINKS][ROOT_LINK_BYTES]; /* "": the host has a directory or nothing there */
};
/* /bin, /sbin, /lib...: names of links[]. */
extern const char *const root_link_names[ROOT_LINKS];

/* A child's word to the server, over its channel. */
enum report_kind {
    REPORT_FAILED = 1,
    REPORT_FDS,   /* descriptors: workspace, upper, namespaces, listener */
    REPORT_READY, /* everything is in force */
    REPORT_EXIT,  /* of its program */
    REPORT_COUNT, /* processes killed at the end */
};

struct child_report {
    uint32_t kind;
    int32_t error;
    uint32_t step, detail;
    uint64_t protections;
    uint32_t layered;
    uint32_t workspace_fds; /* 0 to 2 */
    uint32_t namespace_fds; /* 0 or NAMESPACE_FDS */
    uint32_t listener_fds;  /* 0 or 1 */
    uint64_t count;
    struct wire_exit exit;
};
#define REPORT_FDS_MAX (2 + NAMESPACE_FDS + 1)

/* The program that a cell starts, and who it becomes. */
struct program {
    const struct machine *machine;
    const struct wire_command *command;
    const char *strings; /* argv, then env */
    int fds[CELL_FDS_MAX];
    int worker_fds[CELL_MOUNTS_MAX + 1]; /* CELL_WORKER_FD + i */
    size_t worker_fd_count;
    int exec_fd;            /* CELL_WORKER: its program, else -1 */
    int ruleset_fd;         /* walls.h: the cell's rules */
    int root_ns_fd;         /* identity root: the user namespace to be root of, else -1 */
    bool worker_sees_marks; /* CELL_WORKER: overlay's own attributes are to be read */
    uint32_t role;
    bool ptrace_denied, writes_workspace;
    bool sets_modes; /* walls.h: ours, and may set modes by descriptor */
    uid_t uid;
    gid_t gid;
    uint32_t number; /* of its cell */
    struct cell_limits limits;
    void *pointers; /* argv, NULL, env, NULL: made before the fork */
    /* out */
    uint64_t protections;
    int error;
    enum cell_step step;
};

struct setup {
    const struct machine *machine;
    const struct cgroups *cgroups;
    int leaf; /* the cgroup to enter, -1: none, or born there */
    const struct request_start *request;
    const int *fds; /* of the request */
    size_t fd_count;
    int trees[CELL_MOUNTS_MAX]; /* detached clones that the monitor made; -1: not made */
    int etc_tree, root_tree;
    int layers[CELL_LAYERS_MAX]; /* idmapped clones, likewise */
    int workspace_fd;            /* KEEP, SHARED: its mount */
    int collect_fd;              /* CELL_WORKER: the workspace to collect */
    bool collect_has_marks;
    bool copy_instead; /* the layers cannot be overlaid */
    int root_ns_fd;    /* as in struct program */
    int channel;
    uid_t uid, init_uid;
    gid_t gid;
    const char *blob;
    const char *strings; /* of the command */
    int listener_fd;     /* CELL_GRADER: where its programs ask for candidates */
    /* under way */
    int scratch_fd, root_fd;
    int own_fd;                    /* identity root: where the writable layers are */
    int namespaces[NAMESPACE_FDS]; /* user namespaces only */
    int kept_fds[2];
    size_t kept_count;
    bool layered;
    uint64_t protections;
    enum cell_step step;
    uint32_t detail;
    struct program program;
};

/* The whole of it; never returns. */
_Noreturn void setup_run(struct setup *setup) nonnull(1);

/*
 * view.c: the root, mounts, /etc, texts, /proc, /dev; then pivot_root. view_points.c: what all that
 * is attached to.
 */
must_check int view_build(struct setup *setup) nonnull(1);
must_check int view_enter(struct setup *setup) nonnull(1);
/* Attaches a mount at a path of the new root. */
must_check int view_attach(struct setup *setup, int mount_fd, const char *target, bool directory)
    nonnull(1, 3);
#define VIEW_PATH_BYTES (CELL_PATH_BYTES + 32) /* a path of the cell, in the scratch */
must_check int view_make_points(struct setup *setup) nonnull(1);
/* A file so small that its point is a copy of it. */
bool view_is_copied(const struct setup *setup, const struct stat *status) nonnull(1, 2);
must_check int view_make_dirs(int dir_fd, const char *path, mode_t mode, mode_t parent_mode)
    nonnull(2);
/* A detached, private clone of the tree or file that fd names. made: the monitor's clone or -1. */
must_check int view_clone(const struct setup *setup, int fd, int made) nonnull(1);
must_check int view_proc(struct setup *setup) nonnull(1);
must_check int view_dev(struct setup *setup) nonnull(1);

/* view_own.c: the layers that a cell whose programs are root may write to. */
must_check int view_own_make(struct setup *setup) nonnull(1);
/* overlay.c. lowers: the topmost first; upper -1: read-only. */
struct overlay {
    int lowers[CELL_LAYERS_MAX + 1];
    size_t lower_count;
    int upper, work;
    bool user_xattr, redirect;
};
must_check int overlay_mount(const struct overlay *overlay, uint64_t attributes) nonnull(1);
/* upper and work; the upper begins as a copy of over (below 0: empty) that belongs to the cell. */
must_check int view_own_layer(struct setup *setup, struct overlay *overlay, const char *name,
                              int over) nonnull(1, 2, 3);

/* workspace.c: /workspace, HOME, /tmp, /dev/shm. */
must_check int workspace_make(struct setup *setup) nonnull(1);
/* A sized tmpfs of the cell's user, or of everybody. */
must_check int workspace_place(const struct setup *setup, bool everybody, mode_t mode) nonnull(1);
must_check int workspace_collect(struct setup *setup) nonnull(1);

/* candidate.c: a socket and its point, before the root is mounted; then it on that. */
must_check int candidate_listen(struct setup *setup) nonnull(1);
must_check int candidate_attach(struct setup *setup) nonnull(1);

/* copy.c: everything below from_fd into to_fd. Modes kept without set-id bits, owner as given (-1:
 * none). */
struct copy_options {
    uid_t uid;
    gid_t gid;
    bool set_owner;
};
must_check int copy_tree(int from_fd, int to_fd, const struct copy_options *options) nonnull(3);
must_check int copy_file(int from_fd, int to_fd);

/*
 * program.c: descriptors and exec. The child shares the caller's memory until it executes, as after
 * vfork(). confined.c: what such a child gives up between the two.
 */
must_check int program_prepare(struct program *program, const struct wire_command *command,
                               const int *fds, const char *blob) nonnull(1, 2);
/* Starts it; on failure program->step and error say why. Returns the child's id. */
must_check pid_t program_start(struct program *program, int (*child)(void *program)) nonnull(1);
int confined_child(void *program);
/* For such a child. The last two return only when they failed. */
must_check int program_set_fds(struct program *program) nonnull(1);
must_check int program_execute(const struct program *program) nonnull(1);
int program_fail(struct program *program, enum cell_step step, int r) nonnull(1);

/* identity.c: ids, capabilities (all gone but those in keep), securebits. */
struct identity {
    uid_t uid;
    gid_t gid;
    uint64_t keep_caps;
    bool keep_groups; /* tier B: they cannot be cleared */
    bool is_root;     /* of a user namespace: keep_caps last for as long as it stays that */
};
must_check int identity_take(const struct identity *identity) nonnull(1);
/*
 * Drops from the bounding set what no identity keeps, once for all children: of the monitor, which
 * needs nothing of that set itself.
 */
#define IDENTITY_CAPS                                                                              \
    ((UINT64_C(1) << CAP_KILL) | (UINT64_C(1) << CAP_DAC_READ_SEARCH) |                            \
     (UINT64_C(1) << CAP_SYS_ADMIN))
must_check int identity_bound(void);

/* filters.c */
#define RIGHTS_READ (LANDLOCK_RIGHT_READ_FILE | LANDLOCK_RIGHT_READ_DIR | LANDLOCK_RIGHT_EXECUTE)
/* All but making device nodes. */
#define RIGHTS_WRITE (~(LANDLOCK_RIGHT_MAKE_CHAR | LANDLOCK_RIGHT_MAKE_BLOCK))
#define RIGHTS_USE                                                                                 \
    (LANDLOCK_RIGHT_READ_FILE | LANDLOCK_RIGHT_READ_DIR | LANDLOCK_RIGHT_WRITE_FILE |              \
     LANDLOCK_RIGHT_TRUNCATE | LANDLOCK_RIGHT_IOCTL_DEV)
enum filter {
    FILTER_CELL,
    FILTER_CELL_NO_PTRACE,
    FILTER_WALLED,
    FILTER_WALLED_MODES,
    FILTER_INIT,
    FILTER_WORKER
};
must_check int filter_load(enum filter filter);
must_check int landlock_confine(const struct program *program) nonnull(1);

/* init.c: the loop of PID 1. program 0: none. Never returns. */
_Noreturn void init_run(int channel, int signal_fd, pid_t program);
/* Gives up what a set-up child or a joiner may do; it can then reap and, with may_kill, kill. */
must_check int init_lower(const struct machine *machine, uid_t uid, gid_t gid, bool may_kill);
/* Sends a report; a server that is gone makes the child's end anyway. */
void report_send(int channel, const struct child_report *report, const int *fds, size_t count)
    nonnull(2);
void report_exit(int channel, int status, const struct rusage *usage) nonnull(3);

/* join.c: a further program in a live cell, from a child of the monitor outside it. */
struct join {
    struct program program;
    const struct cgroups *cgroups;
    int leaf; /* as in struct setup */
    int channel;
    int init_pidfd;                   /* tier A */
    int namespace_fds[NAMESPACE_FDS]; /* tier B */
    uid_t init_uid;
    gid_t init_gid;
    const int *fds;
    size_t fd_count;
};
_Noreturn void join_run(struct join *join) nonnull(1);

/* PDEATHSIG, and a look whether the server is already gone. */
must_check int liveness_set(int channel);
