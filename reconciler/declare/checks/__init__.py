"""From merged documents to values of the model, with the checks that the schema cannot express."""
