#pragma once
/*
 * call_frame: what a stand-in in a cell and the broker say to each other, one datagram each.
 *
 * The stand-in sends its call and gets an answer; when that says "pass" it runs the real program in
 * its cell and sends how that ended. Whoever sits in the cell may send anything. libc only: the
 * stand-in, which is static, uses this file, too. Limits: CALL_FRAME_BYTES_MAX, CALL_WORDS_MAX.
 */

#include "base/base.h"

#define CALL_MAGIC 0x31434243u
#define CALL_FRAME_BYTES_MAX                                                                       \
    ((size_t)128 << 10) /* a datagram of that size fits a default buffer                           \
                         */
#define CALL_WORDS_MAX 8192u
#define CALL_ANSWER_BYTES_MAX ((size_t)96 << 10) /* both texts of one answer */
#define CALL_TOOL_BYTES_MAX 64                   /* a program's name with its NUL */

/* Where the stand-in finds the broker, in the cell. */
#define CALL_SOCKET_PATH "/dev/shm/.mocks"
#define CALL_PROGRAM_PATH "/run/tools/call"
#define CALL_TOOLS_DIR "/run/tools/bin"

/*
 * Programs of an author's own are answered for by the same program as a server in a cell beside the
 * agent's: there are their folders, and what they write there.
 */
#define CALL_SEALED_SOCKET_PATH "/dev/shm/.programs"
#define CALL_SEALED_OPTION "-s"
#define CALL_SEALED_SOURCE "/run/tools/sealed"
#define CALL_SEALED_DIR "/home/agent/mocks"
/* For what a program hands on to the real one: where to ask, and which program it is itself. */
#define CALL_ASK_VARIABLE "MOCK_SOCKET"
#define CALL_TOOL_VARIABLE "MOCK_PROGRAM"

enum call_kind {
    CALL_MADE = 1,  /* words: tool, working directory, arguments */
    CALL_TOO_LARGE, /* words: tool; the arguments do not fit */
    CALL_ENDED,     /* no words; exit_code of the real program */
};

struct call_header {
    uint32_t magic, kind, word_count, exit_code;
};

/* A frame that makes sense. Borrows the bytes it was read from. */
struct call_frame {
    enum call_kind kind;
    uint32_t exit_code; /* 0..255 */
    size_t word_count;
    const char *words; /* NUL-terminated, one after the other */
};

/* Takes nothing but whole frames of known kinds. */
must_check bool call_frame_parse(const void *bytes, size_t size, struct call_frame *ret)
    nonnull(1, 3);
/* The i-th word, i < word_count. */
const char *call_frame_word(const struct call_frame *frame, size_t i) nonnull(1);

enum answer_kind {
    ANSWER_TEXT = 1, /* out_bytes, then err_bytes follow */
    ANSWER_PASS,     /* run the real program and say how it ended */
    ANSWER_REFUSED,  /* err_bytes follow: why */
    ANSWER_RUN,      /* out_bytes of words as of CALL_MADE follow: run that, say how it ended, and
                        wait for a further answer */
};

struct answer_header {
    uint32_t magic, kind, exit_code, out_bytes, err_bytes;
};

/* What sealed programs wrote, as the server's program tells it: this, the path, the bytes. */
struct kept_header {
    uint32_t magic, mode, path_bytes, reserved;
    uint64_t size_bytes;
};
/* --kept ends so when more was written than is kept, which is the work of an agent's calls. */
#define KEPT_STATUS_LIMIT 3
#define KEPT_MAGIC 0x3174706bu
#define KEPT_FILES_MAX 256u
#define KEPT_BYTES_MAX ((uint64_t)64 << 20) /* of all files together */
#define KEPT_DEPTH_MAX 16
