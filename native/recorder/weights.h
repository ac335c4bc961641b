/* Which memory a program asks for when it loads weights, and what the answers are: whether they are repacked, and why not. */
#pragma once

#include "common/system.h"

/* A device was asked whether it computes a node, and answered. Written once for each weight, device, op and type of memory. */
void weights_asked(void * device, const void * node, bool answer);
