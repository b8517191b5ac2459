#include "grade/similarity.h"

#include "base/mem.h"
#include "base/str.h"

/* --- tokens ---------------------------------------------------------------------------------- */

enum token_class { TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK };

struct piece {
    enum token_class class;
    const char *bytes;
    size_t size;
    size_t line; /* from 0 */
};

struct scanner {
    const struct similarity_text *text;
    size_t at, line;
};

static bool is_word_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c >= 0x80;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static unsigned char byte_at(const struct scanner *scanner, size_t ahead)
{
    size_t at = scanner->at + ahead;

    return at < scanner->text->size ? (unsigned char)scanner->text->bytes[at] : 0;
}

static bool has_two(const struct scanner *scanner, char first, char second)
{
    return byte_at(scanner, 0) == (unsigned char)first &&
           byte_at(scanner, 1) == (unsigned char)second;
}

static void skip_line(struct scanner *scanner)
{
    while (scanner->at < scanner->text->size && byte_at(scanner, 0) != '\n')
        scanner->at++;
}

static void skip_block(struct scanner *scanner)
{
    scanner->at += 2;
    while (scanner->at < scanner->text->size && !has_two(scanner, '*', '/')) {
        scanner->line += byte_at(scanner, 0) == '\n';
        scanner->at++;
    }
    scanner->at = size_min(scanner->at + 2, scanner->text->size);
}

/* True when there was a comment, which is behind it now. */
static bool skip_comment(struct scanner *scanner)
{
    unsigned style = scanner->text->comments;

    if ((style & COMMENT_SLASH) != 0 && has_two(scanner, '/', '*')) {
        skip_block(scanner);
        return true;
    }
    if (((style & COMMENT_SLASH) != 0 && has_two(scanner, '/', '/')) ||
        ((style & COMMENT_DASHES) != 0 && has_two(scanner, '-', '-')) ||
        ((style & COMMENT_HASH) != 0 && byte_at(scanner, 0) == '#')) {
        skip_line(scanner);
        return true;
    }
    return false;
}

/* Up to the same quote, or the end of the line: a lone apostrophe takes no more than that. */
static void scan_string(struct scanner *scanner)
{
    unsigned char quote = byte_at(scanner, 0);

    scanner->at++;
    while (scanner->at < scanner->text->size && byte_at(scanner, 0) != '\n') {
        unsigned char c = byte_at(scanner, 0);

        scanner->at++;
        if (c == quote)
            return;
        if (c == '\\' && scanner->at < scanner->text->size && byte_at(scanner, 0) != '\n')
            scanner->at++;
    }
}

static void scan_word(struct scanner *scanner, bool number)
{
    while (scanner->at < scanner->text->size &&
           (is_word_byte(byte_at(scanner, 0)) ||
            (number && byte_at(scanner, 0) == '.' && is_digit(byte_at(scanner, 1)))))
        scanner->at++;
}

static bool next_piece(struct scanner *scanner, struct piece *ret)
{
    for (;;) {
        unsigned char c = byte_at(scanner, 0);

        if (scanner->at >= scanner->text->size)
            return false;
        if (c == '\n')
            scanner->line++;
        if (c <= ' ' || c == 0x7f)
            scanner->at++;
        else if (!skip_comment(scanner))
            break;
    }
    unsigned char c = byte_at(scanner, 0);
    size_t start = scanner->at;

    *ret = (struct piece){.bytes = scanner->text->bytes + start, .line = scanner->line};
    if (c == '"' || c == '\'' || c == '`') {
        ret->class = TOKEN_STRING;
        scan_string(scanner);
    } else if (is_word_byte(c)) {
        ret->class = is_digit(c) ? TOKEN_NUMBER : TOKEN_WORD;
        scan_word(scanner, is_digit(c));
    } else {
        ret->class = TOKEN_MARK;
        scanner->at++;
    }
    ret->size = scanner->at - start;
    return true;
}

static const struct {
    const char *end;
    unsigned style;
} comment_styles[] = {
    {".py", COMMENT_HASH},   {".pyi", COMMENT_HASH},     {".sh", COMMENT_HASH},
    {".bash", COMMENT_HASH}, {".rb", COMMENT_HASH},      {".pl", COMMENT_HASH},
    {".r", COMMENT_HASH},    {".yaml", COMMENT_HASH},    {".yml", COMMENT_HASH},
    {".toml", COMMENT_HASH}, {"Makefile", COMMENT_HASH}, {".cmake", COMMENT_HASH},
    {".c", COMMENT_SLASH},   {".h", COMMENT_SLASH},      {".cc", COMMENT_SLASH},
    {".cpp", COMMENT_SLASH}, {".hpp", COMMENT_SLASH},    {".java", COMMENT_SLASH},
    {".js", COMMENT_SLASH},  {".mjs", COMMENT_SLASH},    {".jsx", COMMENT_SLASH},
    {".ts", COMMENT_SLASH},  {".tsx", COMMENT_SLASH},    {".go", COMMENT_SLASH},
    {".rs", COMMENT_SLASH},  {".cs", COMMENT_SLASH},     {".swift", COMMENT_SLASH},
    {".kt", COMMENT_SLASH},  {".scala", COMMENT_SLASH},  {".php", COMMENT_SLASH | COMMENT_HASH},
    {".css", COMMENT_SLASH}, {".sql", COMMENT_DASHES},   {".lua", COMMENT_DASHES},
    {".hs", COMMENT_DASHES},
};

unsigned comment_style_of(const char *file_name)
{
    for (size_t i = 0; i < ARRAY_SIZE(comment_styles); i++) {
        if (str_ends(file_name, comment_styles[i].end))
            return comment_styles[i].style;
    }
    return COMMENT_NONE;
}

/* --- words with a meaning -------------------------------------------------------------------- */

static const char *const branch_words[] = {
    "if",   "elif",  "elsif",  "for",    "foreach", "while", "until", "case",
    "when", "catch", "except", "rescue", "and",     "or",    "loop",  "unless",
};
static const char *const definition_words[] = {
    "def", "function", "fn", "func", "sub", "class", "struct", "enum", "interface", "trait", "impl",
};
static const char *const other_words[] = {
    "else",    "do",       "then",  "fi",      "done",    "esac",      "end",     "return",
    "break",   "continue", "yield", "raise",   "throw",   "try",       "finally", "with",
    "in",      "not",      "is",    "lambda",  "import",  "from",      "using",   "include",
    "package", "switch",   "match", "default", "goto",    "static",    "const",   "let",
    "var",     "mut",      "pub",   "public",  "private", "protected", "void",    "int",
    "char",    "bool",     "float", "double",  "long",    "unsigned",  "new",     "delete",
    "async",   "await",    "pass",  "global",  "local",   "typedef",   "true",    "false",
    "True",    "False",    "None",  "null",    "nil",     "self",      "this",    "select",
    "where",   "group",    "order", "by",      "join",    "begin",     "module",  "namespace",
};

static bool is_one_of(const struct piece *piece, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) == piece->size && memcmp(words[i], piece->bytes, piece->size) == 0)
            return true;
    }
    return false;
}

static bool is_branch(const struct piece *piece)
{
    return is_one_of(piece, branch_words, ARRAY_SIZE(branch_words));
}

static bool is_definition(const struct piece *piece)
{
    return is_one_of(piece, definition_words, ARRAY_SIZE(definition_words));
}

static bool is_keyword(const struct piece *piece)
{
    return is_branch(piece) || is_definition(piece) ||
           is_one_of(piece, other_words, ARRAY_SIZE(other_words));
}

/* --- rows of units --------------------------------------------------------------------------- */

/* Units as numbers: FNV-1a of what they are. */
struct row {
    uint64_t *units;
    size_t count, capacity;
};

#define HASH_START 14695981039346656037u

static uint64_t hash_add(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

static void row_done(struct row *row)
{
    free(row->units);
}

static void row_add(struct row *row, uint64_t unit)
{
    if (row->count == row->capacity) {
        row->capacity = size_max(64, row->capacity * 2);
        row->units = mem_resize(row->units, row->capacity, sizeof(*row->units));
    }
    row->units[row->count++] = unit;
}

static uint64_t class_unit(const struct piece *piece)
{
    static const char *const names[] = {
        [TOKEN_WORD] = " word", [TOKEN_NUMBER] = " number", [TOKEN_STRING] = " string"};

    if (piece->class == TOKEN_MARK || (piece->class == TOKEN_WORD && is_keyword(piece)))
        return hash_add(HASH_START, piece->bytes, piece->size);
    return hash_add(HASH_START, names[piece->class], strlen(names[piece->class]));
}

static void row_of_tokens(const struct similarity_text *text, bool by_class, struct row *row)
{
    struct scanner scanner = {.text = text};
    struct piece piece;

    while (next_piece(&scanner, &piece))
        row_add(row, by_class ? class_unit(&piece) : hash_add(HASH_START, piece.bytes, piece.size));
}

/* One unit a line that is not blank: its words with one blank between. */
static void row_of_lines(const char *bytes, size_t size, struct row *row)
{
    uint64_t hash = HASH_START;
    bool blank = true, space = false;

    for (size_t i = 0; i <= size; i++) {
        unsigned char c = i < size ? (unsigned char)bytes[i] : '\n';

        if (c == '\n') {
            if (!blank)
                row_add(row, hash);
            hash = HASH_START;
            blank = true;
            space = false;
        } else if (c <= ' ') {
            space = true;
        } else {
            if (space && !blank)
                hash = hash_add(hash, " ", 1);
            hash = hash_add(hash, &c, 1);
            blank = space = false;
        }
    }
}

/* --- n-grams --------------------------------------------------------------------------------- */

static int compare_units(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

/* Those of the row with n - 1 blanks at both ends, sorted: as many as units, and n - 1. */
static void grams_of(const struct row *row, size_t n, struct row *ret)
{
    static const uint64_t blank = 0;

    for (size_t end = 1; end <= row->count + n - 1; end++) {
        uint64_t hash = HASH_START;

        for (size_t i = 0; i < n; i++) {
            /* Unit number end - n + i, which may lie before the first or behind the last. */
            bool inside = end + i >= n && end + i - n < row->count;
            uint64_t unit = inside ? row->units[end + i - n] : blank;

            hash = hash_add(hash, &unit, sizeof(unit));
        }
        row_add(ret, hash);
    }
    if (ret->count > 0)
        qsort(ret->units, ret->count, sizeof(*ret->units), compare_units);
}

static double dice(const struct row *a, const struct row *b, size_t n)
{
    scoped(row_done) struct row left = {0};
    scoped(row_done) struct row right = {0};
    size_t common = 0;

    if (a->count == 0 || b->count == 0)
        return a->count == b->count ? 1 : 0;
    grams_of(a, n, &left);
    grams_of(b, n, &right);
    for (size_t i = 0, j = 0; i < left.count && j < right.count;) {
        if (left.units[i] == right.units[j])
            common++;
        bool step_left = left.units[i] <= right.units[j];
        bool step_right = right.units[j] <= left.units[i];

        i += step_left;
        j += step_right;
    }
    return 2.0 * (double)common / (double)(left.count + right.count);
}

/* --- complexity ------------------------------------------------------------------------------ */

struct complexity complexity_of(const struct similarity_text *text)
{
    struct complexity complexity = {0};
    struct scanner scanner = {.text = text};
    struct piece piece, before = {.class = TOKEN_WORD};
    size_t last_line = SIZE_MAX;

    while (next_piece(&scanner, &piece)) {
        bool doubled = piece.class == TOKEN_MARK && before.class == TOKEN_MARK &&
                       before.bytes + 1 == piece.bytes && before.bytes[0] == piece.bytes[0];

        complexity.lines += piece.line != last_line;
        last_line = piece.line;
        if (piece.class == TOKEN_WORD) {
            complexity.branches += is_branch(&piece);
            complexity.definitions += is_definition(&piece);
        } else if (piece.class == TOKEN_MARK) {
            complexity.branches += piece.bytes[0] == '?';
            complexity.branches += doubled && (piece.bytes[0] == '&' || piece.bytes[0] == '|');
        }
        before = piece;
    }
    return complexity;
}

static double ratio(uint64_t a, uint64_t b)
{
    uint64_t most = a > b ? a : b, least = a > b ? b : a;

    return most == 0 ? 1 : (double)least / (double)most;
}

static double compare_complexity(const struct similarity_text *a, const struct similarity_text *b)
{
    struct complexity left = complexity_of(a), right = complexity_of(b);

    return (ratio(left.lines, right.lines) + ratio(left.branches, right.branches) +
            ratio(left.definitions, right.definitions)) /
           3;
}

/* --- the methods ----------------------------------------------------------------------------- */

static double compare_tokens(const struct similarity_text *a, const struct similarity_text *b,
                             bool by_class)
{
    scoped(row_done) struct row left = {0};
    scoped(row_done) struct row right = {0};

    row_of_tokens(a, by_class, &left);
    row_of_tokens(b, by_class, &right);
    return dice(&left, &right, by_class ? 4 : 3);
}

static double compare_lines(const struct similarity_text *a, const struct similarity_text *b)
{
    scoped(row_done) struct row left = {0};
    scoped(row_done) struct row right = {0};

    row_of_lines(a->bytes, a->size, &left);
    row_of_lines(b->bytes, b->size, &right);
    return (dice(&left, &right, 1) + dice(&left, &right, 2)) / 2;
}

double similarity(enum similarity_method method, const struct similarity_text *a,
                  const struct similarity_text *b)
{
    switch (method) {
    case SIMILARITY_TOKEN:
        return compare_tokens(a, b, false);
    case SIMILARITY_LINE:
        return compare_lines(a, b);
    case SIMILARITY_STRUCTURE:
        return compare_tokens(a, b, true);
    case SIMILARITY_COMPLEXITY:
        return compare_complexity(a, b);
    }
    return 0;
}

double similarity_of_words(const struct buf *a, const struct buf *b)
{
    scoped(row_done) struct row left = {0};
    scoped(row_done) struct row right = {0};

    row_of_lines(buf_text(a), a->size_bytes, &left);
    row_of_lines(buf_text(b), b->size_bytes, &right);
    return dice(&left, &right, 3);
}
