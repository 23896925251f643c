"""openvino-model-api: classification with each way of resizing, detection, segmentation, a pipeline, saving."""

import numpy as np
from model_api.models import Model
from model_api.pipelines import AsyncPipeline


def outputs(folder):
    generator = np.random.default_rng(3)
    # Few pixels of these sizes are resized to halves, which the CPU plugin rounds to even and irload away from zero.
    images = [generator.integers(0, 256, (101, 93, 3)).astype(np.uint8) for _ in range(6)]
    arrays = {}
    for path in sorted(folder.glob("classifier_*.xml")):
        model = Model.create_model(str(path), configuration={"output_raw_scores": True})
        result = model(images[0])
        arrays[f"{path.stem} labels"] = np.array([label.id for label in result.top_labels])
        arrays[f"{path.stem} scores"] = result.raw_scores
    pipeline = AsyncPipeline(model)
    for k, image in enumerate(images):
        pipeline.submit_data(image, k)
    pipeline.await_all()
    arrays["pipeline"] = np.array([pipeline.get_result(k)[0].raw_scores for k in range(len(images))])
    result = Model.create_model(str(folder / "detector.xml"), device="CPU")(images[1])
    arrays |= {"boxes": result.bboxes, "scores": result.scores, "labels": result.labels}
    model = Model.create_model(str(folder / "segmenter.xml"))
    result = model(images[2])
    arrays |= {"mask": result.resultImage, "probabilities": result.soft_prediction}
    arrays["contours"] = np.array([len(model.get_contours(result))])
    arrays["batch"] = np.array([result.soft_prediction for result in model.infer_batch(images[:3])])
    saved = folder / "saved.xml"
    model.save(str(saved))
    arrays["saved"] = Model.create_model(str(saved))(images[2]).soft_prediction
    return arrays
