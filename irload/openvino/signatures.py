"""The signatures of the factories: their parameters in order, and the inputs and attributes that these set.

One line per signature: the opset that introduces it, the names of functions, the parameters. The type of the operation
is the name in camel case, unless it is given as `name=Type`. An opset has the functions of earlier opsets, unless it
has a line for them. Parameters:

- `data`: an input. `axes?`: an optional input. `*nodes`: a list of inputs.
- `beta?1.0:f32`: an input whose default is a constant.
- `mask?0:=data`: an input whose default, if a later input is given, is a constant of the type of `data`.
- `.axis`: an attribute. `.mode='max'`: an attribute with a default. `.**attrs`: a dict of attributes.
- `.eps_mode:mode`: an attribute whose name in the IR differs from the parameter.
- `> gamma beta`: the inputs in the order of the operation, if it differs.
"""

SIGNATURES = r"""
1 abs,absolute=Abs,acos,asin,atan,ceil=Ceiling,ceiling,cos,cosh,erf,exp,floor,log,logical_not,negative,relu,sign,sin,\
  sinh,sqrt,tan,tanh node
1 add,divide,equal,floor_mod,greater,greater_equal,less,less_equal,logical_and,logical_or,logical_xor,maximum,\
  minimum,mod,multiply,not_equal,power,subtract left_node right_node .auto_broadcast='NUMPY'
1 avg_pool data_batch .strides .pads_begin .pads_end .kernel_shape:kernel .exclude_pad:exclude-pad \
  .rounding_type='floor' .auto_pad=None
1 batch_norm_inference data gamma beta mean variance .epsilon > gamma beta data mean variance
1 binary_convolution data filters .strides .pads_begin .pads_end .dilations .mode .pad_value .auto_pad='EXPLICIT'
1 broadcast data target_shape axes_mapping? .mode='NUMPY'
1 clamp data .min_value:min .max_value:max
1 concat *nodes .axis
1 convert data .destination_type
1 convert_like data like
1 convolution,group_convolution data filters .strides .pads_begin .pads_end .dilations .auto_pad='EXPLICIT'
1 convolution_backprop_data data filters .strides output_shape? .pads_begin=None .pads_end=None .dilations=None \
  .auto_pad=None .output_padding=None
1 ctc_greedy_decoder data sequence_mask .merge_repeated:ctc_merge_repeated=True
1 deformable_convolution data deformable_values filters .strides .pads_begin .pads_end .dilations \
  .auto_pad='EXPLICIT' .group=1 .deformable_group=1
1 deformable_psroi_pooling feature_maps coords .output_dim .spatial_scale .group_size=1 .mode='bilinear_deformable' \
  .spatial_bins_x=1 .spatial_bins_y=1 .trans_std=1.0 .part_size=1 offsets?
1 depth_to_space node .mode .block_size=1
1 detection_output box_logits class_preds proposals .**attrs aux_class_preds? aux_box_preds?
1 elu data .alpha
1 fake_quantize data input_low input_high output_low output_high .levels .auto_broadcast='NUMPY'
1 gather data indices axis
1 gather_tree step_ids parent_idx max_seq_len end_token
1 grn data .bias
1 group_convolution_backprop_data data filters .strides output_shape? .pads_begin=None .pads_end=None \
  .dilations=None .auto_pad='EXPLICIT' .output_padding=None
1 hard_sigmoid data alpha beta
1 interpolate image output_shape .**attrs
1 lrn data axes .alpha=1 .beta=0.5 .bias=1 .size=5
1 lstm_cell X initial_hidden_state initial_cell_state W R B .hidden_size .activations=None .activations_alpha=None \
  .activations_beta=None .clip=0.0
1 matmul=MatMul data_a data_b .transpose_a .transpose_b
1 max_pool data .strides .pads_begin .pads_end .kernel_shape:kernel .rounding_type='floor' .auto_pad=None
1 non_max_suppression boxes scores max_output_boxes_per_class?0:i64 iou_threshold?0.0:f32 score_threshold?0.0:f32 \
  .box_encoding='corner' .sort_result_descending=True
1 normalize_l2 data axes .eps .eps_mode
1 one_hot indices depth on_value off_value .axis
1 pad arg pads_begin pads_end .pad_mode arg_pad_value?
1 prelu=PRelu data slope
1 prior_box layer_shape image_shape .**attrs
1 prior_box_clustered output_size image_size .**attrs
1 proposal class_probs bbox_deltas image_shape .**attrs
1 psroi_pooling input coords .output_dim .group_size .spatial_scale .spatial_bins_x .spatial_bins_y .mode
1 range start stop step
1 reduce_logical_and,reduce_logical_or,reduce_max,reduce_mean,reduce_min,reduce_prod,reduce_sum node reduction_axes \
  .keep_dims=False
1 region_yolo input .coords .classes .num .do_softmax .mask .axis .end_axis .anchors=None
1 reshape node output_shape .special_zero
1 reverse_sequence input seq_lengths .batch_axis .seq_axis
1 select cond then_node else_node .auto_broadcast='numpy'
1 selu data alpha lambda_value
1 shape_of,sigmoid data
1 softmax data .axis
1 space_to_depth data .mode .block_size=1
1 split data axis .num_splits
1 squared_difference x1 x2 .auto_broadcast='NUMPY'
1 squeeze,unsqueeze data axes
1 strided_slice data begin end strides .begin_mask .end_mask .new_axis_mask=None .shrink_axis_mask=None \
  .ellipsis_mask=None
1 tile data repeats
1 topk=TopK data k .axis .mode .sort
1 transpose data input_order
1 variadic_split data axis split_lengths
2 batch_to_space data block_shape crops_begin crops_end
2 gelu node
2 mvn data .across_channels=False .normalize_variance=False .eps=1e-09
2 reorg_yolo input .stride
2 space_to_batch data block_shape pads_begin pads_end
3 assign new_value .variable_id
3 broadcast data target_shape axes_mapping? .broadcast_spec:mode='NUMPY'
3 bucketize data buckets .output_type='i64' .with_right_bound=True
3 cum_sum,cumsum=CumSum arg axis .exclusive=False .reverse=False
3 embedding_bag_offsets_sum emb_table indices offsets default_index? per_sample_weights?
3 embedding_bag_packed_sum emb_table indices per_sample_weights?
3 embedding_segments_sum emb_table indices segment_ids num_segments? default_index? per_sample_weights?
3 extract_image_patches image .sizes .strides .rates .auto_pad
3 gru_cell X initial_hidden_state W R B .hidden_size .activations=None .activations_alpha=None \
  .activations_beta=None .clip=0.0 .linear_before_reset=False
3 non_max_suppression boxes scores max_output_boxes_per_class?0:i64 iou_threshold?0.0:f32 score_threshold?0.0:f32 \
  .box_encoding='corner' .sort_result_descending=True .output_type='i64'
3 non_zero,shape_of data .output_type='i64'
3 read_value init_value .variable_id
3 rnn_cell X initial_hidden_state W R B .hidden_size .activations .activations_alpha .activations_beta .clip=0.0
3 roi_align data rois batch_indices .pooled_h .pooled_w .sampling_ratio .spatial_scale .mode
3 scatter_elements_update,scatter_update data indices updates axis
3 shuffle_channels data .axis .group
3 topk=TopK data k .axis .mode .sort .index_element_type='i32'
4 acosh,asinh,atanh node
4 ctc_loss logits logit_length labels label_length blank_index? .preprocess_collapse_repeated=False \
  .ctc_merge_repeated=True .unique=False
4 hswish=HSwish,mish,softplus=SoftPlus data
4 reduce_l1,reduce_l2 node reduction_axes .keep_dims=False
4 scatter_nd_update data indices updates
4 swish data beta?1.0:f32
5 batch_norm_inference data gamma beta mean variance .epsilon
5 gather_nd data indices .batch_dims=0
5 gru_sequence X initial_hidden_state sequence_lengths W R B .hidden_size .direction .activations=None \
  .activations_alpha=None .activations_beta=None .clip=0.0 .linear_before_reset=False
5 hsigmoid=HSigmoid data
5 log_softmax data .axis
5 lstm_sequence X initial_hidden_state initial_cell_state sequence_lengths W R B .hidden_size .direction \
  .activations=None .activations_alpha=None .activations_beta=None .clip=0.0
5 non_max_suppression boxes scores max_output_boxes_per_class?0:i64 iou_threshold?0.0:f32 score_threshold?0.0:f32 \
  soft_nms_sigma? .box_encoding='corner' .sort_result_descending=True .output_type='i64'
5 rnn_sequence X initial_hidden_state sequence_lengths W R B .hidden_size .direction .activations=None \
  .activations_alpha=None .activations_beta=None .clip=0.0
5 round data .mode='half_to_even'
6 ctc_greedy_decoder_seq_len data sequence_length blank_index? .merge_repeated=True .classes_index_type='i32' \
  .sequence_length_type='i32'
6 gather_elements data indices .axis=0
6 mvn data axes .normalize_variance .eps .eps_mode
7 dft,idft data axes signal_size?
7 einsum *inputs .equation
7 gather data indices axis .batch_dims=0
7 gelu data .approximation_mode
7 roll data shift axes
8 adaptive_avg_pool data output_shape
8 adaptive_max_pool data output_shape .index_element_type='i64'
8 deformable_convolution data offsets filters .strides .pads_begin .pads_end .dilations mask? .auto_pad='EXPLICIT' \
  .group=1 .deformable_group=1 .bilinear_interpolation_pad=False
8 i420_to_bgr=I420toBGR,i420_to_rgb=I420toRGB arg arg_u? arg_v?
8 matrix_nms boxes scores .sort_result_type='none' .sort_result_across_batch=False .output_type='i64' \
  .score_threshold=0.0 .nms_top_k=-1 .keep_top_k=-1 .background_class=-1 .decay_function='linear' \
  .gaussian_sigma=2.0 .post_threshold=0.0 .normalized=True
8 max_pool data .strides .dilations .pads_begin .pads_end .kernel_shape:kernel .rounding_type='floor' .auto_pad=None \
  .index_element_type='i64' .axis=0
8 multiclass_nms boxes scores .sort_result_type='none' .sort_result_across_batch=False .output_type='i64' \
  .iou_threshold=0.0 .score_threshold=0.0 .nms_top_k=-1 .keep_top_k=-1 .background_class=-1 .nms_eta=1.0 \
  .normalized=True
8 nv12_to_bgr=NV12toBGR,nv12_to_rgb=NV12toRGB arg arg_uv?
8 random_uniform output_shape min_val max_val .output_type .global_seed=0 .op_seed=0 .alignment='tensorflow'
8 slice data start stop step axes?
9 eye num_rows num_columns diagonal_index .output_type batch_shape?
9 generate_proposals im_info anchors deltas scores .min_size .nms_threshold .pre_nms_count .post_nms_count \
  .normalized=True .nms_eta=1.0 .roi_num_type='i64'
9 grid_sample data grid .**attributes
9 irdft,rdft data axes signal_size?
9 multiclass_nms boxes scores roisnum? .sort_result_type='none' .sort_result_across_batch=False .output_type='i64' \
  .iou_threshold=0.0 .score_threshold=0.0 .nms_top_k=-1 .keep_top_k=-1 .background_class=-1 .nms_eta=1.0 \
  .normalized=True
9 non_max_suppression boxes scores max_output_boxes_per_class?0:i64 iou_threshold?0.0:f32 score_threshold?0.0:f32 \
  soft_nms_sigma?0.0:f32 .box_encoding='corner' .sort_result_descending=True .output_type='i64'
9 roi_align data rois batch_indices .pooled_h .pooled_w .sampling_ratio .spatial_scale .mode \
  .aligned_mode='asymmetric'
9 softsign=SoftSign node
10 interpolate image output_shape scales .mode .shape_calculation_mode .pads_begin=None .pads_end=None \
  .coordinate_transformation_mode='half_pixel' .nearest_mode='round_prefer_floor' .antialias=False .cube_coeff=-0.75 \
  axes?
10 is_finite,is_nan=IsNaN data
10 is_inf data .**attributes=None
10 unique data axis? .sorted=True .index_element_type='i64' .count_element_type='i64'
11 interpolate image scales_or_sizes .mode .shape_calculation_mode .pads_begin=None .pads_end=None \
  .coordinate_transformation_mode='half_pixel' .nearest_mode='round_prefer_floor' .antialias=False .cube_coeff=-0.75 \
  axes?
11 topk=TopK data k .axis .mode .sort .index_element_type='i32' .stable=False
12 group_normalization data scale bias .num_groups .epsilon
12 range start stop step .output_type
12 scatter_elements_update data indices updates axis .reduction='None' .use_init_val=True
13 bitwise_and,bitwise_or,bitwise_xor left_node right_node .auto_broadcast='NUMPY'
13 bitwise_not node
13 fake_convert data scale shift? .destination_type='f8e4m3'
13 multinomial probs num_samples .convert_type .with_replacement .log_probs .global_seed=0 .op_seed=0
13 nms_rotated boxes scores max_output_boxes_per_class iou_threshold score_threshold .sort_result_descending=True \
  .output_type='i64' .clockwise=True
13 scaled_dot_product_attention query key value attention_mask?0:=query scale? .causal=False
14 convert_promote_types left_node right_node .promote_unsafe=False .pytorch_scalar_promotion=False \
  .u64_integer_promotion_target='f32'
14 inverse data .adjoint=False
15 bitwise_left_shift,bitwise_right_shift arg0 arg1 .auto_broadcast='NUMPY'
15 col2im=Col2Im data output_size kernel_size .strides=None .dilations=None .pads_begin=None .pads_end=None
15 embedding_bag_offsets emb_table indices offsets default_index?-1:=indices per_sample_weights? .reduction='sum'
15 embedding_bag_packed emb_table indices per_sample_weights? .reduction='sum'
15 roi_align_rotated data rois batch_indices .pooled_h .pooled_w .sampling_ratio .spatial_scale .clockwise_mode
15 scatter_nd_update data indices updates .reduction=None
15 search_sorted sorted_sequence values .right_mode=False
15 slice_scatter data updates start stop step axes?
15 squeeze data axes? .allow_axis_skip=False
15 stft data window frame_size frame_step .transpose_frames
15 string_tensor_pack begins ends symbols
15 string_tensor_unpack data
16 avg_pool data_batch .strides .pads_begin .pads_end .kernel_shape:kernel .exclude_pad:exclude-pad \
  .rounding_type='floor' .auto_pad=None .dilations=None
16 identity data
16 istft data window frame_size frame_step .center .normalized signal_length?
16 one_hot indices depth on_value off_value .axis .negative_indices_mode=None
16 segment_max data segment_ids num_segments? .fill_mode=None
16 sparse_fill_empty_rows values dense_shape indices default_value
17 erfinv=ErfInv node
17 grouped_matmul=GroupedMatMul mat_a mat_b offsets?
"""
