#pragma once
/*
 * protocol: what the client and the two servers (monitor, tempdir) say to each other.
 *
 * SOCK_SEQPACKET; one request is one datagram of exactly the size of its struct, with descriptors.
 * Descriptor fields are positions in the datagram's descriptors, -1 for none. Strings and the bytes
 * of synthesised files travel in one sealed memfd, the blob: first argc + envc NUL-terminated
 * strings, then the texts at the offsets that the request gives. A connection has
 * at most one request under way; the server answers each with one MESSAGE_REPLY and may send
 * MESSAGE_EXIT at any time. Both ends are built from one source tree: there is no version but the
 * magic. libc only.
 */

#include "cell/cell.h"

#define PROTOCOL_MAGIC 0x63624b31u
#define WIRE_FDS_MAX 48                          /* descriptors of one datagram */
#define WIRE_NAME_BYTES 64                       /* a masked name with its NUL */
#define WIRE_CWD_BYTES 512                       /* a working directory with its NUL */
#define WIRE_TEXTS_BYTES_MAX ((uint64_t)4 << 20) /* all synthesised files of one cell */
#define WIRE_ARGS_COUNT_MAX 65536u               /* argv and env together */

#define CELL_WORKSPACE_PATH "/workspace"
#define CELL_HOME_PATH "/home/agent"
#define CELL_COLLECT_PATH "/src"
#define CELL_CANDIDATE_SOCKET "/run/closedbook/candidates"
#define CANDIDATE_FDS_MAX 4 /* descriptors of one REQUEST_CANDIDATE: the blob, 0, 1 and 2 */

/* What a program sets for itself right before it is executed; the rest belongs to its cell. */
#define PROTECTS_PROGRAM                                                                           \
    (PROTECT_NO_CAPS | PROTECT_NO_NEW_PRIVS | PROTECT_SECCOMP | PROTECT_LANDLOCK | PROTECT_FDS |   \
     PROTECT_NPROC | PROTECT_NO_PTRACE | PROTECT_NO_SOCKETS | PROTECT_SCOPED)

/* The descriptor that each server finds open at its start. */
#define SERVER_CONTROL_FD 3

enum request_kind {
    REQUEST_CONNECT = 1, /* one descriptor: the server's end of a further connection */
    REQUEST_START,
    REQUEST_EXEC,
    REQUEST_END,
    REQUEST_RELEASE, /* the workspace of an ended cell */
    REQUEST_CGROUPS, /* once, on the control connection, before any cell */
    REQUEST_RECIPE,  /* a request_start: what candidates of the live grading cell are made of */
    /* From within a grading cell, over its own socket, which takes this and END only. Once a
     * connection; the answer is followed by MESSAGE_EXIT when nothing of the candidate is left. */
    REQUEST_CANDIDATE,
};

struct request_header {
    uint32_t magic;
    uint32_t kind;
    uint32_t cell_id;  /* 0 in CONNECT, START and CANDIDATE */
    uint32_t reserved; /* 0 */
};

struct wire_command {
    uint32_t argc; /* 0: no program */
    uint32_t envc;
    uint64_t strings_bytes;
    int32_t fds[CELL_FDS_MAX];
    uint32_t fd_count;
    uint32_t controlling_tty;
    char cwd[WIRE_CWD_BYTES]; /* "": the workspace */
};

enum wire_mount_flags {
    WIRE_MOUNT_WRITABLE = 1 << 0,
    WIRE_MOUNT_HIDDEN_PARENT = 1 << 1,
    WIRE_MOUNT_NO_DESCRIPTOR = 1 << 2, /* CELL_WORKER: not among the worker's descriptors */
    WIRE_MOUNT_OWN = 1 << 3,           /* identity_root: a writable layer of the cell's over it */
};

struct wire_mount {
    int32_t fd;
    uint32_t flags;
    char target[CELL_PATH_BYTES];
    char masks[CELL_MASKS_MAX][WIRE_NAME_BYTES]; /* "": none */
};

struct wire_text {
    uint64_t offset;
    uint64_t size_bytes;
    uint32_t executable;
    uint32_t reserved; /* 0 */
    char target[CELL_PATH_BYTES];
};

struct request_start {
    struct request_header header;
    uint32_t role; /* enum cell_role */
    uint32_t ptrace_denied;
    uint32_t identity_root;
    uint32_t reserved; /* 0 */
    uint32_t workspace_kind;
    uint32_t layer_count;
    int32_t layer_fds[CELL_LAYERS_MAX];
    uint32_t keep_cell_id;
    uint32_t collect_cell_id;
    int32_t blob_fd;
    int32_t etc_fd;
    int32_t program_fd; /* CELL_WORKER: the program, executed by descriptor */
    uint32_t mount_count;
    uint32_t text_count;
    int32_t root_fd;           /* the tree that is the root; -1: one made of the mounts */
    struct cell_limits limits; /* no zeros: the client has filled in the defaults */
    struct wire_mount mounts[CELL_MOUNTS_MAX];
    struct wire_text texts[CELL_TEXTS_MAX];
    struct wire_command command;
};

/* EXEC and CANDIDATE. */
struct request_exec {
    struct request_header header;
    int32_t blob_fd;
    uint32_t reserved; /* 0 */
    struct wire_command command;
};

/* Directories in which cells get cgroups. The answer's facts say what that limits. */
struct request_cgroups {
    struct request_header header;
    int32_t fds[CELL_CGROUP_KINDS]; /* -1: none */
    uint32_t reserved;              /* 0 */
};

/* CONNECT, END and RELEASE. */
struct request_plain {
    struct request_header header;
};

union request {
    struct request_header header;
    struct request_start start;
    struct request_exec exec;
    struct request_cgroups cgroups;
    struct request_plain plain;
};

enum message_kind {
    MESSAGE_READY = 1, /* once, on the control connection: the facts, or error and step */
    MESSAGE_REPLY,
    MESSAGE_EXIT, /* a program of a cell ended */
};

/* Where a cell's making failed. cell_step_name() has the words. */
enum cell_step {
    STEP_NONE,
    STEP_REQUEST,
    STEP_LEASE,
    STEP_CGROUP,
    STEP_NAMESPACES,
    STEP_USER_NAMESPACE,
    STEP_LIVENESS,
    STEP_ROOT,
    STEP_MOUNT,
    STEP_ETC,
    STEP_TEXT,
    STEP_PROC,
    STEP_DEV,
    STEP_WORKSPACE,
    STEP_SOCKET,
    STEP_PIVOT,
    STEP_NETWORK,
    STEP_HOSTNAME,
    STEP_KEYRING,
    STEP_INIT,
    STEP_DESCRIPTORS,
    STEP_TTY,
    STEP_LIMITS,
    STEP_IDENTITY,
    STEP_LANDLOCK,
    STEP_SECCOMP,
    STEP_JOIN,
    STEP_CWD, /* from here on the command is to blame, not the machine */
    STEP_EXEC,
    STEP_COUNT,
};

const char *cell_step_name(uint32_t step);

struct wire_facts {
    uint32_t tier;
    int32_t landlock_abi;
    uint32_t overlay, idmap, tmpfs_xattr, subuid;
    uint32_t lacking; /* enum cell_step: what keeps the machine from a better tier */
    int32_t lacking_error;
    uint64_t protections;
    uint64_t limits;
};

struct wire_exit {
    int32_t exit_code;
    int32_t term_signal;
    uint64_t user_us, system_us, max_rss_kib;
    uint64_t end_ns;
};

struct wire_usage {
    uint64_t cpu_us;
    uint64_t has_memory;
    uint64_t memory_peak_bytes, oom_kills;
    uint64_t looks, private_peak_bytes, shared_peak_bytes; /* the most that was seen in them */
};

struct message {
    uint32_t magic;
    uint32_t kind;
    uint32_t cell_id;
    uint32_t process; /* START: 1 when a program was started; EXEC, EXIT: its number */
    int32_t error;    /* errno, 0: success */
    uint32_t step;
    uint32_t detail; /* which mount, text or layer; EXIT: candidates that could not be made */
    uint32_t uid;
    int32_t init_pid; /* as the server sees it */
    uint32_t layered;
    uint32_t workspace_empty; /* END: nothing is in it, or over its layers */
    uint32_t reserved;
    uint64_t protections;
    uint64_t processes; /* END */
    uint64_t kill_ns;
    struct wire_facts facts; /* READY */
    struct wire_exit exit;   /* EXIT */
    struct wire_usage usage; /* END */
};

_Static_assert(sizeof(struct request_header) == 16, "headers have no holes");
