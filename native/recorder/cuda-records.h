/* Reads what CUPTI reports, finds the launch and the operators of each kernel, copy and fill, and writes them to the log. */
#pragma once

/* Once, before the program's first use of a device. Returns why there is no CUPTI; NULL: it is used. */
const char * cuda_records_start(void);
