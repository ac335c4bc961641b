/* Reports in the log what did not fit into tables of the recorder. */
#pragma once

#include "common/system.h"

/* Writes what was counted since the last time, if that is much. `is_end`: also if it is little. Without any lock. */
void losses_report(bool is_end);
