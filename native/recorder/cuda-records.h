/* Reads what CUPTI reports, finds the launch and the operators of each kernel, copy and fill, and writes them to the log. */
#pragma once

/* Before the program's first use of a device. */
void cuda_records_start(void);
