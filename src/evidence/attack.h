#pragma once
/*
 * attack: one way out of a cell, or to what it hides, tried for real, from inside, as the agent.
 *
 * An attack is a row of a table: attacks_X.c holds those of class X. It runs in a process of its
 * own, looks at things (each is counted: one that looked at nothing has failed, not been denied),
 * and says what it found. What it searches for is a secret that it does not know: the targets give
 * the secret's first letters and its digest, never a place. Part of closedbook-probe, which is
 * static and runs in any root; depends on base's libc part and hash alone.
 */

#include "base/base.h"
#include "base/hash.h"

#define ATTACK_DETAIL_BYTES 256
#define TARGETS_MAX 64
#define TARGET_BYTES 200
#define SECRET_DIGITS 32 /* hex digits after the hint */
#define HINT_BYTES 32
#define PLANTS ".probe" /* the folder of the plants, in the workspace */

enum attack_verdict {
    ATTACK_DENIED = 1,
    ATTACK_FOUND,   /* it worked */
    ATTACK_POSTURE, /* surface that could be spared, nothing of the private half */
    ATTACK_PLANTED, /* its first half is done: what becomes of the plant decides */
    ATTACK_ERROR,   /* it could not be tried */
};
const char *attack_verdict_name(enum attack_verdict verdict);

/* Something outside the cell that it must not reach. */
struct target {
    char where[8];            /* "host", "cell" (another one) or "peer" (in the graders' cell) */
    char kind[16];            /* "tcp", "pid"... */
    char value[TARGET_BYTES]; /* a number, a name */
};

struct targets {
    char hint[HINT_BYTES];
    struct sha256 digest; /* of hint and SECRET_DIGITS digits */
    char tier[8];
    struct target items[TARGETS_MAX];
    size_t count;
};

/* Reads "WHERE KIND VALUE" lines. False when the text is not of that form. */
must_check bool targets_parse(char *text, struct targets *ret) nonnull(1, 2);
/* The next target of the kind, from *index on; NULL: no more. where NULL: anywhere. */
const struct target *targets_next(const struct targets *targets, const char *where,
                                  const char *kind, size_t *index) nonnull(1, 3, 4);
/* The number of the first such target, otherwise when there is none. */
uint64_t targets_number(const struct targets *targets, const char *kind, uint64_t otherwise)
    nonnull(1, 2);

/*
 * True where the agent is root of its cell (sandbox.identity): being so, and changing the cell's
 * own copy of the system, is no finding then. The same paths on the host still are.
 */
bool targets_say_root(const struct targets *targets) nonnull(1);
/* For such a cell: the directories of the system that are the cell's own copy. */
bool attack_is_own_system(const char *path) nonnull(1);

/* What an attack says; travels through a pipe. */
struct attack_result {
    enum attack_verdict verdict;
    uint64_t examined;
    char detail[ATTACK_DETAIL_BYTES];
};

/* Pipe ends that are held by what is meant to outlive the agent. */
enum lifeline { LIFELINE_DAEMON, LIFELINE_STOPPED, LIFELINE_TIMER, LIFELINES };

struct attack_context {
    const struct targets *targets;
    bool fast;
    int lifelines[LIFELINES]; /* -1: none */
    uint64_t deadline_ns;
    struct attack_result result;
};

enum attack_phase {
    PHASE_AGENT,     /* in the agent's cell */
    PHASE_GRADE,     /* in the grading cell, as a program of the graders */
    PHASE_CANDIDATE, /* in a candidate's cell, as a program that a grader runs by as-candidate */
};

/* What shows that an attack could have worked: where it must be FOUND. */
enum attack_control {
    CONTROL_LEAKY,  /* in the same cell under the tempdir driver */
    CONTROL_MUTANT, /* only in a cell of a monitor that was built without a protection */
};

struct attack {
    const char *id;
    char class;
    enum attack_phase phase;
    enum attack_control control;
    bool fast;         /* part of probe --fast */
    const char *title; /* what it tries, in a few words */
    void (*run)(struct attack_context *context);
};

struct attack_table {
    const struct attack *attacks;
    size_t count;
};
extern const struct attack_table attacks_material, attacks_copies, attacks_process;
extern const struct attack_table attacks_permission, attacks_escape, attacks_network;
extern const struct attack_table attacks_cells, attacks_names, attacks_collect, attacks_host;
extern const struct attack_table attacks_grader, attacks_verdict, attacks_persist;
extern const struct attack_table attacks_candidate, attacks_limits;

/* --- what attacks say */

void attack_looked(struct attack_context *context, uint64_t count) nonnull(1);
/* The first word of the strongest verdict stays. */
void attack_found(struct attack_context *context, const char *fmt, ...) printf_like(2, 3);
void attack_posture(struct attack_context *context, const char *fmt, ...) printf_like(2, 3);
void attack_planted(struct attack_context *context, const char *fmt, ...) printf_like(2, 3);
void attack_failed(struct attack_context *context, const char *fmt, ...) printf_like(2, 3);
bool attack_late(const struct attack_context *context) nonnull(1);

/* --- searching */

/* True when the bytes hold the secret; _encoded: or a form of it that a plain search misses. */
bool secret_in(const struct targets *targets, const void *bytes, size_t size) nonnull(1);
bool secret_in_encoded(const struct targets *targets, const char *bytes, size_t size) nonnull(1, 2);
/* Reads the start of a file and looks for the secret; counts it when it could be read. */
bool secret_in_file(struct attack_context *context, int dir_fd, const char *path) nonnull(1, 3);

/* A walk, breadth first, that follows no link and reads no /proc. */
struct walk {
    const char *const *roots; /* NULL-terminated; those that are not there are passed over */
    const char *const *skip;  /* absolute paths, NULL-terminated, or NULL */
    size_t entries_max;
    bool contents, encoded, names;
    void (*visit)(struct attack_context *context, const char *path, unsigned char type);
};
void walk_for_secret(struct attack_context *context, const struct walk *walk) nonnull(1, 2);

/* --- helpers */

/* Runs it in a child of its own; returns the wait status, -1 when it could not be started. */
int attack_child(int (*run)(void *argument), void *argument) nonnull(1);
/* Reads at most size - 1 bytes of a file, ends them with NUL; -errno on failure. */
long attack_read(const char *path, char *ret, size_t size) nonnull(1, 2);
/* Calls visit for each process id in /proc but the caller's family. */
void attack_processes(struct attack_context *context,
                      void (*visit)(struct attack_context *context, int pid)) nonnull(1, 2);
/* All of words, files and memory of other processes; and whether PID 1 is to be seen. */
void attack_read_others(struct attack_context *context) nonnull(1);
/* True for the ids of this program's own processes. */
bool attack_is_own(int pid);
/* "EPERM" and so on. */
const char *attack_errno_name(int number);
/* The digest of a word, for comparison with "word" targets. */
bool targets_have_word(const struct targets *targets, const char *word, size_t length)
    nonnull(1, 2);
