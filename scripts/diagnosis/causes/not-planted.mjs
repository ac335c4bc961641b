/** Rules for which no cause is planted, and why. */
export const NOT_PLANTED = {
  'smt-siblings': 'It needs cores with two threads each',
  'slow-cores': 'It needs cores of several kinds',
  'clock-limit': 'It needs a machine whose clock a program can limit: virtual ones do not have it',
  'remote-memory': 'It needs a machine with several NUMA nodes',
  'unused-tensor-cores': 'It needs a profile of Nsight Compute, and a GPU',
  'low-l2-hits': 'It needs a profile of Nsight Compute, and a GPU',
  'gpu-communication': 'It needs several GPUs that communicate by NCCL or RCCL',
  'gpu-migrations': 'It needs the driver of a GPU; a report of Nsight Systems is a test',
}
