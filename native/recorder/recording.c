#include "recorder/recording.h"

struct recording recording = {.level = LEVEL_AHEAD};
