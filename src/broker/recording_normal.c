/* What of a request is the same in another run of the same thing. */
#include "broker/recording.h"

#include <ctype.h>

#include "base/mem.h"
#include "base/str.h"

#define HEX_RUN_MIN 7      /* with digits and letters: short names of commits begin here */
#define HEX_RUN_CERTAIN 16 /* whatever it is made of */
#define DIGITS_RUN_MIN 10  /* seconds since 1970 */
#define CLOCK_BYTES 5      /* 12:34 */
#define DATE_BYTES 10      /* 2026-12-01 */
#define MONTH_LETTERS 3
#define NORMAL_DEPTH_MAX 56 /* then the line, which has more around it, can be read again */

/* Fields of a request that name a session or a user, and change no answer. */
static const char *const dropped[] = {"metadata", "client_metadata",   "prompt_cache_key",
                                      "user",     "safety_identifier", "session_id"};

static bool is_dropped(const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(dropped); i++) {
        if (str_equal(key, dropped[i]))
            return true;
    }
    return false;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) != 0;
}

static bool fits(const char *s, const char *pattern)
{
    for (; *pattern != '\0'; s++, pattern++) {
        bool good = *pattern == 'd' ? isdigit((unsigned char)*s) != 0 : *s == *pattern;

        if (!good)
            return false;
    }
    return true;
}

/* "12:34", "12:34:56", "12:34:56.789", each with a Z; 0: none. */
static size_t clock_length(const char *s)
{
    size_t length = CLOCK_BYTES;

    if (!fits(s, "dd:dd"))
        return 0;
    if (fits(s + length, ":dd"))
        length += strlen(":dd");
    if (s[length] == '.' && isdigit((unsigned char)s[length + 1]) != 0)
        length += 1 + strspn(s + length + 1, "0123456789");
    return length + (s[length] == 'Z' ? 1 : 0);
}

/* "2026-12-01", "2026/12/01", with a clock behind it or without; 0: none. */
static size_t date_length(const char *s)
{
    if (!fits(s, "dddd-dd-dd") && !fits(s, "dddd/dd/dd"))
        return 0;
    const char *rest = s + DATE_BYTES;
    size_t clock = *rest == 'T' || *rest == ' ' ? clock_length(rest + 1) : 0;

    return DATE_BYTES + (clock == 0 ? 0 : clock + 1);
}

/* "1/2/2026", "12/01/2026"; 0: none. */
static size_t short_date_length(const char *s)
{
    size_t first = strspn(s, "0123456789");

    if (first < 1 || first > 2 || s[first] != '/')
        return 0;
    size_t second = strspn(s + first + 1, "0123456789");
    const char *year = s + first + 1 + second;

    return second >= 1 && second <= 2 && fits(year, "/dddd") ? first + second + strlen("//dddd")
                                                             : 0;
}

static size_t name_length(const char *s, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);

        if (strncmp(s, names[i], length) == 0 && !is_word(s[length]))
            return length;
        if (strncmp(s, names[i], MONTH_LETTERS) == 0 && !is_word(s[MONTH_LETTERS]))
            return MONTH_LETTERS;
    }
    return 0;
}

/* Names of days; and of months where digits follow, as "may" is a word, too. */
static size_t calendar_length(const char *s)
{
    static const char *const days[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                       "Friday", "Saturday", "Sunday"};
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    size_t month = name_length(s, months, ARRAY_SIZE(months));

    if (month == 0)
        return name_length(s, days, ARRAY_SIZE(days));
    size_t digits = s[month] == ' ' ? strspn(s + month + 1, "0123456789") : 0;

    if (digits < 1 || digits > 2)
        return 0;
    size_t length = month + 1 + digits;

    if (fits(s + length, ", dddd"))
        return length + strlen(", dddd");
    return fits(s + length, " dddd") ? length + strlen(" dddd") : length;
}

/* "0.03s", "12 ms", "1.5 seconds": how long something took. */
static size_t duration_length(const char *s)
{
    static const char *const units[] = {"seconds", "second", "sec", "ms", "s"};
    size_t length = strspn(s, "0123456789");

    if (length == 0)
        return 0;
    if (s[length] == '.' && isdigit((unsigned char)s[length + 1]) != 0)
        length += 1 + strspn(s + length + 1, "0123456789");
    size_t gap = s[length] == ' ' ? 1 : 0;

    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        size_t unit = strlen(units[i]);

        if (strncmp(s + length + gap, units[i], unit) == 0 && !is_word(s[length + gap + unit]))
            return length + gap + unit;
    }
    return 0;
}

/* 123e4567-e89b-12d3-a456-426614174000; 0: none. */
static size_t uuid_length(const char *s)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    size_t length = 0;

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        if (i > 0 && s[length++] != '-')
            return 0;
        for (size_t j = 0; j < groups[i]; j++) {
            if (isxdigit((unsigned char)s[length++]) == 0)
                return 0;
        }
    }
    return is_word(s[length]) ? 0 : length;
}

/* Digits that nobody chose: of UUIDs, digests, keys and clocks. */
static size_t random_length(const char *s)
{
    size_t length = strspn(s, "0123456789abcdefABCDEF"), digits = strspn(s, "0123456789");
    size_t all = 0;

    if (fits(s + digits, ".d") && digits >= DIGITS_RUN_MIN)
        return digits + 1 + strspn(s + digits + 1, "0123456789");
    if (digits >= DIGITS_RUN_MIN && !is_word(s[digits]))
        return digits;
    if (is_word(s[length]))
        return 0;
    for (size_t i = 0; i < length; i++)
        all += isdigit((unsigned char)s[i]) != 0 ? 1 : 0;
    bool is_mixed = all > 0 && all < length;

    return length >= HEX_RUN_CERTAIN || (length >= HEX_RUN_MIN && is_mixed) ? length : 0;
}

struct kind {
    size_t (*length)(const char *s);
    const char *name;
};

/* At the beginning of a word. */
static size_t variable_length(const char *s, const char **ret_name)
{
    static const struct kind kinds[] = {
        {date_length, "<time>"},         {short_date_length, "<time>"}, {clock_length, "<time>"},
        {calendar_length, "<time>"},     {uuid_length, "<id>"},         {random_length, "<id>"},
        {duration_length, "<duration>"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t length = kinds[i].length(s);

        *ret_name = kinds[i].name;
        if (length > 0)
            return length;
    }
    return 0;
}

/* A word that is called an id, as in "Chunk ID: 1f2e3d"; 0: none. */
static size_t labelled_length(const char *text, const char *s)
{
    static const char label[] = "ID: ";
    size_t length = 0;

    if ((size_t)(s - text) < strlen(label) ||
        strncasecmp(s - strlen(label), label, strlen(label)) != 0)
        return 0;
    while (is_word(s[length]))
        length++;
    return length;
}

static json_t *normal_text(const char *whole)
{
    const char *s = whole;
    scoped(buf_done) struct buf text = {0};

    for (bool begins = true; *s != '\0';) {
        const char *name = "<id>";
        size_t length = begins ? labelled_length(whole, s) : 0;

        if (begins && length == 0)
            length = variable_length(s, &name);

        if (length > 0) {
            buf_text_append(&text, name);
            s += length;
            begins = true;
        } else {
            begins = !is_word(*s);
            buf_char(&text, *s++);
        }
    }
    return json_text(buf_text(&text), text.size_bytes);
}

static json_t *normal_value(const json_t *value, unsigned depth)
{
    const char *key;
    json_t *item, *result = NULL;
    size_t i;

    if (json_is_string(value))
        return normal_text(json_string_value(value));
    if (depth > NORMAL_DEPTH_MAX && (json_is_array(value) || json_is_object(value)))
        return json_text("<deep>", strlen("<deep>"));
    if (json_is_array(value)) {
        result = json_array();
        json_array_foreach (value, i, item)
            json_push(result, normal_value(item, depth + 1));
        return result;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    result = json_object();
    json_object_foreach ((json_t *)(uintptr_t)value, key, item)
        json_put(result, key, normal_value(item, depth + 1));
    return result;
}

static json_t *normal_body(const struct recorded_request *request)
{
    scoped(json_freep) json_t *body = NULL;
    json_t *item, *result = json_object();
    const char *key;

    if (json_parse("request", request->body, request->body_size, &body, NULL) < 0 ||
        !json_is_object(body)) {
        json_decref(result);
        return json_text(request->body, request->body_size);
    }
    json_object_foreach (body, key, item) {
        if (!is_dropped(key))
            json_put(result, key, normal_value(item, 1));
    }
    return result;
}

json_t *recording_normal(const struct recorded_request *request)
{
    json_t *normal = json_object();

    json_put_text(normal, "api", model_api_name(request->api));
    json_put_text(normal, "method", request->method);
    json_put_text(normal, "path", request->path);
    json_put(normal, "body", normal_body(request));
    return normal;
}
