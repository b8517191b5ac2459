#include "evidence/attack.h"

const char *attack_verdict_name(enum attack_verdict verdict)
{
    switch (verdict) {
    case ATTACK_DENIED:
        return "DENIED";
    case ATTACK_FOUND:
        return "FOUND";
    case ATTACK_POSTURE:
        return "posture";
    case ATTACK_PLANTED:
        return "PLANTED";
    case ATTACK_ERROR:
        return "ERROR";
    }
    return "?";
}
