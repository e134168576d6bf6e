"""What runs beside the copying of records: which flows may run, what their copies lack, pausing and resuming."""
